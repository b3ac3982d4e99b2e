import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { Clock } from '../clock.ts';
import { errorMessage } from '../errors.ts';
import type { Logger } from '../process/log.ts';
import { backoffMs, sleep } from '../retry.ts';
import type { KubeConnection, Query } from './connection.ts';
import { isGone, KubeApiError, KubeUnreachableError } from './errors.ts';
import { collectionPath, type KubeObject } from './resource-client.ts';
import { watch } from './watch.ts';

const PAGE_SIZE = 500;
const RETRY = { baseMs: 100, maxMs: 2000 };
/** The server is asked to end each watch after this long, and after as much again at random. */
const WATCH_SECONDS = 300;
/** A reconnection after a normal end of a watch that lasts longer than this counts as a loss. */
const RECONNECT_LIMIT_MS = 2000;
/** An opened watch that is refused (410) says so within this time. */
const SETTLE_MS = 100;
/**
 * A server that ends watches sooner than this, and without an event, is not well: going on at once
 * would be a storm.
 */
const SHORTEST_WATCH_MS = 1000;

/** How long a watch that says nothing is trusted. In milliseconds. */
export interface WatchSilence {
  /** After this long the API server is asked for one object, which it has to read from etcd. */
  readonly probeAfterMs: number;
  /** When that is not answered by then, the API server, or etcd behind it, has stopped. */
  readonly probeTimeoutMs: number;
  /**
   * A watch as silent as this is dead, even if the server is not: it sends a bookmark about every
   * minute.
   */
  readonly idleTimeoutMs: number;
}

export interface ListWatchOptions<T extends KubeObject> {
  readonly connection: KubeConnection;
  readonly kind: ResourceKind<T>;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly silence: WatchSilence;
  readonly onFailure?: (operation: 'list' | 'watch') => void;
  /** Called when the server answered or sent anything. */
  readonly onContact: () => void;
  /**
   * `true` when a watch is open and nothing was missed, `false` when that is over. May be called
   * with the same again.
   */
  readonly onConnected: (connected: boolean) => void;
  /** Makes what is kept of an object; what the server sends may be several times as large. */
  readonly accept: (object: T) => T;
  readonly onList: (objects: readonly T[], version: string) => void;
  readonly onPut: (object: T) => void;
  readonly onDelete: (object: T) => void;
  /** Everything up to this version has been reported. */
  readonly onBookmark: (version: string) => void;
}

interface ListPage<T> {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly T[];
}

/**
 * Lists, then follows watch after watch from there, and begins again after every failure. Resolves
 * on abort; never rejects.
 */
export async function listAndWatch<T extends KubeObject>(
  options: ListWatchOptions<T>,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log, kind } = options;
  const source = createSource(options, signal);
  let failures = 0;
  let wasGone = false;
  let logged = '';
  let connected = false;
  /** Up to where everything is known; undefined: a list is needed. */
  let position: string | undefined;

  function setConnected(next: boolean): void {
    connected = next;
    options.onConnected(next);
  }

  async function follow(from: string): Promise<void> {
    const startedAtMs = clock.monotonicMs();
    let timer = setTimeout(() => setConnected(false), RECONNECT_LIMIT_MS);
    let events = 0;
    const settle = () => {
      clearTimeout(timer);
      logged = '';
      setConnected(true);
    };
    try {
      await source.watch(from, {
        onOpen() {
          clearTimeout(timer);
          timer = setTimeout(settle, SETTLE_MS);
        },
        onEvent(version) {
          if (events === 0) settle();
          events += 1;
          failures = 0;
          wasGone = false;
          position = version;
        },
      });
    } finally {
      clearTimeout(timer);
    }
    if (events === 0 && clock.monotonicMs() - startedAtMs < SHORTEST_WATCH_MS) {
      throw new KubeUnreachableError('The watch ended as soon as it had begun');
    }
    failures = 0;
    wasGone = false;
  }

  async function recover(err: unknown): Promise<void> {
    setConnected(false);
    options.onFailure?.(position === undefined ? 'list' : 'watch');
    const message = errorMessage(err);
    log[message === logged ? 'debug' : 'warn']({ err, kind: kind.kind }, 'list or watch failed');
    logged = message;
    failures += 1;
    const isGoneAgain = wasGone;
    wasGone = isGone(err);
    if (wasGone) {
      position = undefined;
      // However long the server was unavailable before: this is its answer. Again and again would
      // be a storm of lists.
      if (!isGoneAgain) return;
    }
    const asked = err instanceof KubeApiError ? (err.retryAfterMs ?? 0) : 0;
    await sleep(Math.max(asked, backoffMs(failures - 1, RETRY)), signal);
  }

  while (!signal.aborted) {
    try {
      if (position === undefined) position = await source.list();
      else if (!connected) await source.probe(signal);
      await follow(position);
    } catch (err) {
      if (!signal.aborted) await recover(err);
    }
  }
}

interface WatchProgress {
  readonly onOpen: () => void;
  readonly onEvent: (version: string) => void;
}

interface Source {
  /** @returns the resource version to watch from. */
  list(): Promise<string>;
  /** Resolves when the server could read from etcd. */
  probe(signal: AbortSignal): Promise<void>;
  /** Resolves when the server ended the watch, or on abort. */
  watch(from: string, progress: WatchProgress): Promise<void>;
}

function createSource<T extends KubeObject>(options: ListWatchOptions<T>, signal: AbortSignal): Source {
  const { connection, kind, onContact, accept, silence } = options;
  const path = collectionPath(kind, options.namespace);
  const selector: Query = { labelSelector: options.labelSelector };

  async function list(): Promise<string> {
    const objects: T[] = [];
    let page: ListPage<T> | undefined;
    do {
      const query: Query = { ...selector, limit: PAGE_SIZE, continue: page?.metadata.continue };
      page = await connection.request<ListPage<T>>({ method: 'GET', path, query, signal });
      for (const item of page.items) objects.push(accept(item));
    } while (page.metadata.continue !== undefined && page.metadata.continue !== '');
    onContact();
    options.onList(objects, page.metadata.resourceVersion);
    return page.metadata.resourceVersion;
  }

  async function probe(within: AbortSignal): Promise<void> {
    const limited = AbortSignal.any([within, AbortSignal.timeout(silence.probeTimeoutMs)]);
    await connection.request<unknown>({ method: 'GET', path, query: { ...selector, limit: 1 }, signal: limited });
    onContact();
  }

  return {
    list,
    probe,
    watch: (from, { onOpen, onEvent }) =>
      watch<T>(connection, {
        path,
        query: { ...selector, resourceVersion: from, timeoutSeconds: Math.floor(WATCH_SECONDS * (1 + Math.random())) },
        silence: { ...silence, probe },
        signal,
        onOpen() {
          onContact();
          onOpen();
        },
        onEvent({ type, object }) {
          onContact();
          if (type === 'ADDED' || type === 'MODIFIED') options.onPut(accept(object));
          else if (type === 'DELETED') options.onDelete(accept(object));
          const version = object.metadata.resourceVersion ?? from;
          if (type === 'BOOKMARK') options.onBookmark(version);
          onEvent(version);
        },
      }),
  };
}
