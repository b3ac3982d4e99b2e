import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isAlreadyExists, isConflict, isInvalid, isNotFound, KubeApiError } from '@rollcall/platform/kube/errors.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { withoutOwned } from '@rollcall/platform/kube/managed-fields.ts';
import {
  type KubeObject,
  preconditionsOf,
  type ResourceClient,
  resourceClient,
} from '@rollcall/platform/kube/resource-client.ts';
import { type Change, type EventChange, TerminalError } from './decision.ts';
import type { EventRecorder } from './events.ts';

/**
 * The decision was made on a view that is no longer true: observe again. Expected; nothing is
 * wrong.
 */
export class StaleError extends Error {
  override readonly name = 'StaleError';
}

/**
 * The API server, or who reviews for it, does not make a change; it may later. The cause is its
 * answer.
 */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}

/** The local copy of a kind that gets our writes before the watch brings them. */
export interface WriteCache {
  readonly kind: ResourceKind<KubeObject>;
  readonly informer: Pick<Informer<KubeObject>, 'recordWrite' | 'recordDelete'>;
}

type Write = Exclude<Change, EventChange>;

/** No object ever has this version, as etcd's first write makes the second: what is there stays as it is. */
const ABSENT = { resourceVersion: '1' };

export interface ApplierDeps {
  readonly connection: KubeConnection;
  /** Owner of the fields set by server-side apply. */
  readonly fieldManager: string;
  readonly caches: readonly WriteCache[];
  readonly events: EventRecorder;
}

/** The only writer of the operator. */
export type Applier = ReturnType<typeof createApplier>;

export function createApplier({ connection, fieldManager, caches, events }: ApplierDeps) {
  function cacheOf(kind: ResourceKind<KubeObject>): WriteCache['informer'] | undefined {
    return caches.find((cache) => cache.kind.plural === kind.plural && cache.kind.apiVersion === kind.apiVersion)
      ?.informer;
  }

  /**
   * Reads what another writer left and puts it into the cache, so that the next observation sees it
   * however late the watch is.
   */
  async function refresh(client: ResourceClient<KubeObject>, change: Write, name: string): Promise<void> {
    const cache = cacheOf(change.kind);
    if (cache === undefined) return;
    const current = await client.find(name);
    if (current !== undefined) cache.recordWrite(current);
    else if (change.action !== 'create' && change.object !== undefined) cache.recordDelete(change.object);
  }

  /** @returns the object as it is now; undefined when it is gone. */
  async function send(client: ResourceClient<KubeObject>, change: Write): Promise<KubeObject | undefined> {
    if (change.action === 'create') return client.create(change.manifest);
    if (change.action === 'apply') {
      const { manifest, object } = change;
      const preconditions = object === undefined ? ABSENT : preconditionsOf(object.metadata);
      const metadata = { ...manifest.metadata, ...preconditions };
      return client.apply({ ...manifest, metadata }, { fieldManager, force: true });
    }
    const { name } = change.object.metadata;
    const preconditions = preconditionsOf(change.object.metadata);
    if (change.action === 'patch') return client.patch(name, change.patch, preconditions);
    if (change.action === 'disown') {
      // Caches have our own entries alone.
      const { managedFields = [] } = (await client.get(name)).metadata;
      const rest = withoutOwned(managedFields, fieldManager, change.kept);
      return client.patch(name, { metadata: { managedFields: rest } }, preconditions);
    }
    if (change.action === 'status') {
      const options = { fieldManager, force: true, subresource: 'status' } as const;
      return client.apply({ metadata: { name, ...preconditions }, status: change.status }, options);
    }
    await client.delete(name, preconditions);
    return undefined;
  }

  async function write(client: ResourceClient<KubeObject>, change: Write) {
    const written = await send(client, change);
    const cache = cacheOf(change.kind);
    if (written !== undefined) cache?.recordWrite(written);
    else if (change.action === 'delete') cache?.recordDelete(change.object);
  }

  return {
    /**
     * Makes one change; making it again changes nothing.
     *
     * @throws StaleError when the object is not the one that was observed; the caches then hold what
     * it is now.
     * @throws TerminalError when the API server rejects the object itself.
     * @throws RefusedError when it answers anything else than that the change is made.
     * @throws KubeUnreachableError without an answer.
     */
    async apply(change: Change): Promise<void> {
      if (change.action === 'event') return events.record(change);
      const { namespace = '', name = '' } = 'manifest' in change ? change.manifest.metadata : change.object.metadata;
      const client = resourceClient(connection, change.kind, namespace);
      try {
        await write(client, change);
      } catch (error) {
        const isGone = isNotFound(error) && 'object' in change && change.object !== undefined;
        if (isConflict(error) || isAlreadyExists(error) || isGone) {
          await refresh(client, change, name);
          throw new StaleError(`${change.kind.kind} ${name} changed meanwhile`, { cause: error });
        }
        if (!(error instanceof KubeApiError)) throw error;
        const message = `The API server refuses to ${change.action} ${change.kind.kind} ${name}`;
        throw isInvalid(error)
          ? new TerminalError(message, { cause: error })
          : new RefusedError(message, { cause: error });
      }
    },
  };
}
