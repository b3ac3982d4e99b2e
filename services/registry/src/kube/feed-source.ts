import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { collectionPath, type KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import { versionOf } from '@rollcall/platform/kube/store.ts';
import type { FeedSource } from '../feeds/catch-up.ts';
import type { Feed } from '../feeds/feed.ts';

const TIMEOUT_MS = 2000;

interface Collection<T extends KubeObject> {
  readonly connection: KubeConnection;
  readonly kind: ResourceKind<T>;
  readonly namespace: string;
}

export interface FollowerDeps<T extends KubeObject, Item> extends Collection<T> {
  readonly informer: Informer<T>;
  readonly feed: Feed<Item>;
  readonly items: ItemsOf<T, Item>;
}

/** What objects are in a feed. */
export interface ItemsOf<T extends KubeObject, Item> {
  /** All that a complete list of objects is. @param version that it is of. */
  listed(objects: readonly T[], version: number): readonly Item[];
  /** What has changed with the object; undefined: nothing. */
  changed(object: T, deleted: boolean): { readonly item: Item; readonly deleted: boolean } | undefined;
}

/** Where each object is an item. */
export function eachObject<T extends KubeObject, Item>(toItem: (object: T) => Item): ItemsOf<T, Item> {
  return {
    listed: (objects) => objects.map(toItem),
    changed: (object, deleted) => ({ item: toItem(object), deleted }),
  };
}

/** Has a feed follow what an informer receives. @returns what the feed follows. */
export function followInformer<T extends KubeObject, Item>(deps: FollowerDeps<T, Item>): FeedSource {
  const { informer, feed, items } = deps;
  informer.onStream((news) => {
    if (news.type === 'listed') {
      const listedVersion = Number(news.resourceVersion);
      return feed.replace(items.listed(news.objects, listedVersion), listedVersion);
    }
    const version = versionOf(news.object);
    const change = items.changed(news.object, news.type === 'deleted');
    if (change === undefined) feed.reach(version);
    else feed.apply({ version, ...change });
  });
  informer.onBookmark((version) => feed.reach(Number(version)));
  return {
    connected: () => informer.connectivity() === 'connected',
    newestVersion: newestVersionReader(deps),
  };
}

/**
 * Asks the API server, and it etcd, for its newest resource version, of whatever kind. One request
 * is under way at a time; later callers share the next one, for its answer may be older than what
 * they know.
 */
function newestVersionReader<T extends KubeObject>({
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
