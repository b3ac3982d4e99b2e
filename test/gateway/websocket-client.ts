import { once } from 'node:events';
import { WebSocket } from 'ws';

/** A message of the server, loosely typed. */
export interface ServerMessage {
  readonly type: string;
  readonly id?: string;
  readonly channel?: string;
  readonly payload?: Readonly<Record<string, unknown>>;
}

/** A client of the endpoint. */
export interface TestClient extends AsyncDisposable {
  readonly socket: WebSocket;
  send(message: object): void;
  /** The next message. @throws when none comes within the time, or the connection has ended. */
  next(timeoutMs?: number): Promise<ServerMessage>;
  /** All messages up to and with the first that satisfies. @throws as {@link next}. */
  until(isWanted: (message: ServerMessage) => boolean, timeoutMs?: number): Promise<ServerMessage[]>;
  /** What came and was not asked for yet. */
  unread(): readonly ServerMessage[];
  /** How the connection ended. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

const TIMEOUT_MS = 20_000;

/** Connects and reads the welcome. */
export async function connect(url: string, token: string): Promise<TestClient> {
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } });
  const client = clientOf(socket);
  await once(socket, 'open');
  const { type } = await client.next();
  if (type !== 'welcome') throw new Error(`Expected a welcome and got ${type}`);
  return client;
}

export function clientOf(socket: WebSocket): TestClient {
  const queue: ServerMessage[] = [];
  const closed = Promise.withResolvers<{ code: number; reason: string }>();
  let isClosed = false;
  let wake: (() => void) | undefined;
  socket.on('message', (data: Buffer) => {
    queue.push(JSON.parse(data.toString()));
    wake?.();
  });
  socket.on('close', (code, reason) => {
    isClosed = true;
    closed.resolve({ code, reason: reason.toString() });
    wake?.();
  });
  socket.on('error', () => undefined);

  async function next(timeoutMs = TIMEOUT_MS): Promise<ServerMessage> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const message = queue.shift();
      if (message !== undefined) return message;
      const leftMs = deadline - performance.now();
      if (isClosed || leftMs <= 0) throw new Error(isClosed ? 'The connection has ended' : 'No message in time');
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, leftMs);
      wake = resolve;
      await promise;
      clearTimeout(timer);
    }
  }

  return {
    socket,
    send: (message) => socket.send(JSON.stringify(message)),
    next,
    async until(isWanted, timeoutMs) {
      const seen: ServerMessage[] = [];
      for (;;) {
        const message = await next(timeoutMs);
        seen.push(message);
        if (isWanted(message)) return seen;
      }
    },
    unread: () => [...queue],
    closed: closed.promise,
    async [Symbol.asyncDispose]() {
      socket.terminate();
      await closed.promise;
    },
  };
}

export const isSynced = ({ payload }: ServerMessage): boolean => payload?.['type'] === 'synced';

/** The status and the error code of a refused upgrade; undefined: it was accepted. */
export async function refusalOf(
  url: string,
  options: { readonly headers?: Record<string, string>; readonly protocols?: string[] } = {},
): Promise<{ readonly status: number; readonly code: string; readonly headers: object } | undefined> {
  const socket = new WebSocket(url, options.protocols ?? [], { headers: options.headers ?? {} });
  const outcome = Promise.withResolvers<Awaited<ReturnType<typeof refusalOf>>>();
  socket.on('error', outcome.reject);
  socket.on('open', () => {
    socket.terminate();
    outcome.resolve(undefined);
  });
  socket.on('unexpected-response', (_request, response) => {
    let text = '';
    response.on('error', outcome.reject);
    response.on('data', (chunk) => {
      text += String(chunk);
    });
    response.on('end', () => {
      const { error } = JSON.parse(text) as { error: { code: string } };
      outcome.resolve({ status: response.statusCode ?? 0, code: error.code, headers: response.headers });
    });
  });
  return outcome.promise;
}
