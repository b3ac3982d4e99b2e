import type { ClusterNamespace } from './namespace.ts';

/**
 * What app/load.ts has counted since it started. Instants are milliseconds of the client's clock.
 */
export interface LoadReport {
  readonly at: number;
  readonly failed: number;
  /** By what went wrong. */
  readonly failures: Counts;
  /** Good answers by the version that gave them. */
  readonly answers: Counts;
}

type Counts = Readonly<Record<string, { readonly count: number; readonly firstAt: number; readonly lastAt: number }>>;

/** Asks the client in the pod, through the API server. */
export async function readLoad(namespace: ClusterNamespace, pod: string): Promise<LoadReport> {
  return JSON.parse(await readPod(namespace, pod, '/report'));
}

/** GET of a path on port 8080 of a pod, through the API server. */
export function readPod(namespace: ClusterNamespace, pod: string, path: string): Promise<string> {
  return namespace.kubectl('get', '--raw', proxyPath(namespace, pod, path));
}

/** By which the API server leads to a path on port 8080 of a pod. */
export function proxyPath({ name }: ClusterNamespace, pod: string, path: string): string {
  return `/api/v1/namespaces/${name}/pods/${pod}:8080/proxy${path}`;
}

/** All requests that have got an answer or failed. */
export function countRequests({ answers, failed }: LoadReport): number {
  return Object.values(answers).reduce((sum, { count }) => sum + count, failed);
}

/** Percentage of the good answers between two reports that a version gave. */
export function shareOf(version: string, before: LoadReport, after: LoadReport): number {
  const answersOf = (name: string): number => (after.answers[name]?.count ?? 0) - (before.answers[name]?.count ?? 0);
  const all = Object.keys(after.answers).reduce((sum, name) => sum + answersOf(name), 0);
  return all === 0 ? 0 : (100 * answersOf(version)) / all;
}

/** How often which failure was seen between two reports, and when. */
export function failuresSince(before: LoadReport, after: LoadReport): string[] {
  return Object.entries(after.failures).flatMap(([reason, { count, firstAt, lastAt }]) => {
    const times = count - (before.failures[reason]?.count ?? 0);
    return times === 0 ? [] : [`${times} x ${reason.trim()}, ${time(Math.max(firstAt, before.at))} to ${time(lastAt)}`];
  });
}

function time(at: number): string {
  return new Date(at).toISOString().slice(11, 23);
}
