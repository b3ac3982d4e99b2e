import { once } from 'node:events';
import { sleep } from '@rollcall/platform/retry.ts';
import { WebSocket } from 'ws';
import { clientOf } from '../gateway/websocket-client.ts';
import { connectGrpc, type GrpcClient } from '../registry/grpc-client.ts';

/** What a follower receives of a registration, by whichever door. */
type Update =
  | { readonly type: 'reset' }
  | { readonly type: 'put'; readonly name: string; readonly url: string; readonly cursor: string | undefined }
  | { readonly type: 'gone'; readonly name: string; readonly cursor: string | undefined }
  | { readonly type: 'synced'; readonly cursor: string | undefined };

/** One connection of a follower. */
interface Connection {
  /** The next update. @throws once it has ended. */
  next(): Promise<Update>;
  /** How it ended: the code of the protocol. Milliseconds by `performance.now()`. */
  readonly ended: Promise<Pick<End, 'code' | 'atMs'>>;
  close(): void;
}

/** @throws where nobody accepts the connection. */
type Connect = (replica: number, cursor: string | undefined) => Promise<Connection>;

/** How a connection ended that the follower did not end itself. */
interface End {
  readonly replica: number;
  readonly code: number;
  readonly atMs: number;
}

/** A follower that keeps what it received of the registrations. */
export interface Follower {
  readonly name: string;
  /** URLs by name. */
  readonly services: ReadonlyMap<string, string>;
  /** The replica that it follows now, or tries to. */
  readonly replica: number;
  readonly ends: readonly End[];
  /** How often it went on from its cursor, and how often it was sent a reset instead. */
  readonly resumed: number;
  readonly resets: number;
  stop(): Promise<void>;
}

export interface FollowerOptions {
  readonly name: string;
  readonly connect: Connect;
  /** The replica to begin with. */
  readonly replica: number;
  /** Leaves a connection by itself after so long; undefined: never. */
  readonly hopMs?: number;
}

const REPLICAS = 2;
/** Disconnected, so that there is something to miss. */
const DISCONNECTED_MS = 200;

/**
 * Follows at one replica and, whenever the connection ends, goes on from its last cursor at the
 * other.
 */
export function follow({ name, connect, replica: first, hopMs }: FollowerOptions): Follower {
  const services = new Map<string, string>();
  const ends: End[] = [];
  const stopping = new AbortController();
  const counts = { resumed: 0, resets: 0 };
  let replica = first;
  let cursor: string | undefined;

  function apply(update: Update): void {
    if (update.type === 'reset') {
      counts.resets += 1;
      services.clear();
      // Until all of it has come there is nowhere to go on from.
      cursor = undefined;
      return;
    }
    if (update.type === 'put') services.set(update.name, update.url);
    if (update.type === 'gone') services.delete(update.name);
    cursor = update.cursor ?? cursor;
  }

  async function read(connection: Connection): Promise<void> {
    let isResuming = cursor !== undefined;
    if (!isResuming) services.clear();
    for (;;) {
      const update = await connection.next();
      if (isResuming && update.type !== 'reset') counts.resumed += 1;
      isResuming = false;
      apply(update);
    }
  }

  async function followOnce(): Promise<void> {
    const connection = await connect(replica, cursor);
    let left = false;
    const leave = () => {
      left = true;
      connection.close();
    };
    stopping.signal.addEventListener('abort', leave, { once: true });
    const timer = hopMs === undefined ? undefined : setTimeout(leave, hopMs);
    await read(connection).catch(() => undefined);
    clearTimeout(timer);
    stopping.signal.removeEventListener('abort', leave);
    const { code, atMs } = await connection.ended;
    if (!left) ends.push({ replica, code, atMs });
  }

  const running = (async () => {
    while (!stopping.signal.aborted) {
      // A replica that is unavailable accepts no connection.
      await followOnce().catch(() => undefined);
      replica = (replica + 1) % REPLICAS;
      await sleep(DISCONNECTED_MS, stopping.signal);
    }
  })();

  return {
    name,
    services,
    ends,
    get replica() {
      return replica;
    },
    get resumed() {
      return counts.resumed;
    },
    get resets() {
      return counts.resets;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

const CONNECT_TIMEOUT_MS = 5000;
/** Longer than any outage: what never comes is found by what is missing in the end. */
const SILENCE_MS = 300_000;

/** @param urls of `/api/ws`, by replica. */
export function byWebSocket(urls: readonly string[], token: string): Connect {
  return async (replica, cursor) => {
    const headers = { authorization: `Bearer ${token}` };
    const socket = new WebSocket(urls[replica] ?? '', { headers, handshakeTimeout: CONNECT_TIMEOUT_MS });
    const client = clientOf(socket);
    await once(socket, 'open');
    const payload = cursor === undefined ? {} : { payload: { cursor } };
    client.send({ type: 'subscribe', channel: 'registrations', ...payload });
    return {
      async next() {
        for (;;) {
          const message = await client.next(SILENCE_MS);
          if (message.type === 'reset') return { type: 'reset' };
          if (message.type === 'event') return updateByEvent(message.payload ?? {}, message.id);
        }
      },
      ended: client.closed.then(({ code }) => ({ code, atMs: performance.now() })),
      close: () => socket.terminate(),
    };
  };
}

function updateByEvent(payload: Readonly<Record<string, unknown>>, cursor: string | undefined): Update {
  const { service_name: name = '', service_url: url = '' } = Object(payload['service']) as Record<string, string>;
  switch (payload['type']) {
    case 'added':
    case 'modified':
      return { type: 'put', name, url, cursor };
    case 'removed':
    case 'expired':
      return { type: 'gone', name, cursor };
    default:
      return { type: 'synced', cursor };
  }
}

/** @param ports of gRPC, by replica. */
export function byWatch(ports: readonly number[], token: string): Connect {
  return async (replica, cursor) => {
    const client = connectGrpc(`127.0.0.1:${ports[replica]}`, token);
    await isConnected(client).catch((error: unknown) => {
      client[Symbol.dispose]();
      throw error;
    });
    const stream = client.open('Watch', { cursor: cursor ?? '' });
    return {
      next: async () => updateByMessage(await stream.next()),
      ended: stream.ended.then(({ code }) => {
        client[Symbol.dispose]();
        return { code, atMs: performance.now() };
      }),
      close: () => stream[Symbol.dispose](),
    };
  };
}

function isConnected({ client }: GrpcClient): Promise<void> {
  return new Promise((resolve, reject) => {
    client.waitForReady(Date.now() + CONNECT_TIMEOUT_MS, (error) => (error === undefined ? resolve() : reject(error)));
  });
}

function updateByMessage(message: Readonly<Record<string, unknown>>): Update {
  const { serviceName: name = '', serviceUrl: url = '' } = Object(message['service']) as Record<string, string>;
  const cursor = message['cursor'] === '' ? undefined : String(message['cursor']);
  switch (message['type']) {
    case 'TYPE_RESET':
      return { type: 'reset' };
    case 'TYPE_ADDED':
    case 'TYPE_MODIFIED':
      return { type: 'put', name, url, cursor };
    case 'TYPE_REMOVED':
    case 'TYPE_EXPIRED':
      return { type: 'gone', name, cursor };
    default:
      return { type: 'synced', cursor };
  }
}
