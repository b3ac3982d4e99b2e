import type { Clock } from '@rollcall/platform/clock.ts';
import { type HttpRoute, httpRouteKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import type { DirectReads } from './direct-reads.ts';
import { createReadCache } from './read-cache.ts';

/** A canary is observed with every event of its pods. */
const MAX_AGE_MS = 1000;

/** HTTPRoutes, of which nobody keeps a copy as only few jobs need them, at most a second old. */
export type RouteCache = ReturnType<typeof createRouteCache>;

export function createRouteCache(reads: Pick<DirectReads, 'listRoutes'>, clock: Pick<Clock, 'monotonicMs'>) {
  const recent = createReadCache<readonly HttpRoute[] | undefined>(clock, MAX_AGE_MS);
  const forget = ({ metadata }: KubeObject) => recent.forget(metadata.namespace ?? '');
  return {
    /** Undefined where the API has no such kind. @throws as the API server's client. */
    list: (namespace: string): Promise<readonly HttpRoute[] | undefined> =>
      recent.get(namespace, () => reads.listRoutes(namespace)),
    /** What the operator writes, or finds to be other than it thought, is read anew. */
    writeCache: { kind: httpRouteKind, informer: { recordWrite: forget, recordDelete: forget } },
  };
}
