import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { collectionPath, type KubeObject } from '@rollcall/platform/kube/resource-client.ts';

const TIMEOUT_MS = 2000;

interface Collection<T extends KubeObject> {
  readonly connection: KubeConnection;
  readonly kind: ResourceKind<T>;
  readonly namespace: string;
}

/**
 * Asks the API server, and it etcd, for its newest resource version, of whatever kind. One request
 * is under way at a time; later callers share the next one, for its answer may be older than what
 * they know.
 */
export function newestVersionReader<T extends KubeObject>({
  connection,
  kind,
  namespace,
}: Collection<T>): () => Promise<number> {
  const path = collectionPath(kind, namespace);
  let underWay: Promise<unknown> = Promise.resolve();
  let next: Promise<number> | undefined;

  async function ask(): Promise<number> {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const query = { limit: 1 };
    const list = await connection.request<{ readonly metadata: { readonly resourceVersion: string } }>({
      method: 'GET',
      path,
      query,
      signal,
    });
    return Number(list.metadata.resourceVersion);
  }

  return () => {
    next ??= underWay.then(() => {
      next = undefined;
      const answer = ask();
      underWay = answer.catch(() => undefined);
      return answer;
    });
    return next;
  };
}
