import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { text } from 'node:stream/consumers';
import type { Clock } from '@rollcall/platform/clock.ts';

export interface Http2Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

type Http2Result =
  | ({ readonly result: 'answered' } & Http2Answer)
  | { readonly result: 'not-sent' | 'unknown'; readonly reason: string };

interface Http2Request {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Requests over one connection of HTTP/2, which is made again when the server has gone away. */
export interface Http2Client {
  post(request: Http2Request, signal: AbortSignal): Promise<Http2Result>;
  close(): void;
}

const CONNECT_TIMEOUT_MS = 3000;
/** Who was heard of so recently is there. Apple closes connections that are silent for longer. */
const QUIET_MS = 2000;
const PING_TIMEOUT_MS = 2000;

interface Connection {
  readonly session: ClientHttp2Session;
  heardAtMs: number;
  /** Under way. */
  ping?: Promise<boolean> | undefined;
}

export function createHttp2Client(baseUrl: URL, clock: Clock): Http2Client {
  let current: Connection | undefined;

  function open(): Connection {
    const session = connect(baseUrl);
    const made: Connection = { session, heardAtMs: clock.monotonicMs() };
    const limit = setTimeout(() => session.destroy(), CONNECT_TIMEOUT_MS);
    session.once('connect', () => clearTimeout(limit));
    session.once('close', () => clearTimeout(limit));
    // Whoever waits for an answer is told by its stream.
    session.on('error', () => undefined);
    // Streams that began go on; new ones need another connection.
    session.on('goaway', () => session.close());
    return made;
  }

  /** A server that went away without a word is found out before a message is lost to it. */
  async function usable(): Promise<Connection> {
    const known = current;
    if (known !== undefined && isOpen(known) && !(await isThere(known))) known.session.destroy();
    // Others may have opened another one meanwhile.
    if (current === undefined || !isOpen(current)) current = open();
    return current;
  }

  async function isThere(connection: Connection): Promise<boolean> {
    const isQuiet = clock.monotonicMs() - connection.heardAtMs >= QUIET_MS;
    if (!isQuiet || connection.session.connecting) return true;
    connection.ping ??= answersPing(connection.session);
    const answered = await connection.ping;
    connection.ping = undefined;
    if (answered) connection.heardAtMs = clock.monotonicMs();
    return answered;
  }

  return {
    async post({ path, headers, body }, signal) {
      const over = await usable();
      if (signal.aborted) return { result: 'not-sent', reason: 'aborted' };
      const { session } = over;
      const stream = session.request({ ':method': 'POST', ':path': path, ...headers }, { signal });
      stream.end(body);
      try {
        const head = await headOf(stream);
        over.heardAtMs = clock.monotonicMs();
        return { result: 'answered', ...head, body: await text(stream) };
      } catch (error) {
        const isUnsent =
          session.connecting || !wasConnected(session) || stream.rstCode === constants.NGHTTP2_REFUSED_STREAM;
        return { result: isUnsent ? 'not-sent' : 'unknown', reason: codeOf(error) };
      }
    },
    close() {
      current?.session.destroy();
    },
  };
}

function isOpen({ session }: Connection): boolean {
  return !session.closed && !session.destroyed;
}

/** A session that ends meanwhile answers none, and says so only where it was asked before. */
function answersPing(session: ClientHttp2Session): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const limit = setTimeout(() => resolve(false), PING_TIMEOUT_MS);
  session.once('close', () => resolve(false));
  if (!session.ping((error) => resolve(error === null))) resolve(false);
  return promise.finally(() => clearTimeout(limit));
}

/** A session that has never been connected has no settings of the other side. */
function wasConnected(session: ClientHttp2Session): boolean {
  return session.alpnProtocol !== undefined;
}

function headOf(stream: ClientHttp2Stream): Promise<Omit<Http2Answer, 'body'>> {
  const { promise, resolve, reject } = Promise.withResolvers<Omit<Http2Answer, 'body'>>();
  stream.once('response', ({ ':status': status, 'retry-after': retryAfter }) => {
    resolve({ status: Number(status), retryAfter });
  });
  stream.once('error', reject);
  stream.once('close', () => reject(new Error('closed')));
  return promise;
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.name === 'AbortError') return 'timeout';
  return 'code' in error && typeof error.code === 'string' ? error.code : 'unknown';
}
