import { waitUntil } from '@rollcall/local/wait.ts';
import { countRequests, failuresSince, type LoadReport, readLoad } from '../../support/load-report.ts';
import { loadPod } from '../../support/manifests.ts';
import type { ClusterNamespace } from '../../support/namespace.ts';

/** Requests a second, unless another rate is asked for. */
const RATE = 100;
/**
 * Requests that what happens is watched for at least, so that the load is there before and after.
 */
const LEAST_REQUESTS = 100;

/** A client that sends requests at an even rate from a pod. */
export interface Load {
  /**
   * Does something while requests go on.
   *
   * @returns how many were sent meanwhile, and those of them that failed.
   */
  during(what: () => Promise<void>): Promise<Watched>;
  /** Waits until so many have been sent since it started. */
  sent(requests: number): Promise<void>;
}

export interface Watched {
  readonly requests: number;
  readonly failed: number;
  /** Time and reason of the first. */
  readonly failures: readonly string[];
  /** Which there were; where several requests are sent, the requests. */
  readonly answers: readonly string[];
}

export interface LoadClient {
  /** Of the pod. */
  readonly name: string;
  readonly image: string;
  /** Requests that are sent in turn, such as `POST http://…`. */
  readonly targets: readonly string[];
  /** Shown with every request. */
  readonly token?: string;
  /** Requests a second. */
  readonly rate?: number;
  /** How many requests at once. */
  readonly connections?: number;
}

export async function startLoad(namespace: ClusterNamespace, client: LoadClient): Promise<Load> {
  const { targets, rate = RATE, ...others } = client;
  const { name } = client;
  await namespace.apply(loadPod({ ...others, target: targets.join(','), rate, requestsPerConnection: 100 }));
  await namespace.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=120s');
  const report = (): Promise<LoadReport> => readLoad(namespace, name);
  const untilSent = async (requests: number): Promise<LoadReport> => {
    let now = await report();
    const areSent = async (): Promise<boolean> => {
      now = await report();
      return countRequests(now) >= requests;
    };
    await waitUntil(`${name} has sent requests`, areSent, { timeoutMs: 120_000, intervalMs: 1000 });
    return now;
  };
  const untilRequests = (since: LoadReport) => untilSent(countRequests(since) + LEAST_REQUESTS);
  return {
    sent: async (requests) => {
      await untilSent(requests);
    },
    during: async (what) => {
      const before = await report();
      await untilRequests(before);
      await what();
      const after = await untilRequests(await report());
      return {
        requests: countRequests(after) - countRequests(before),
        failed: after.failed - before.failed,
        failures: failuresSince(before, after),
        answers: Object.keys(after.answers),
      };
    },
  };
}
