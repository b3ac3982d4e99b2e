import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { text } from 'node:stream/consumers';

export interface Http2Answer {
  readonly status: number;
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

/** Requests over one connection of HTTP/2, which is made again when it has ended. */
export interface Http2Client {
  post(request: Http2Request, signal: AbortSignal): Promise<Http2Result>;
  close(): void;
}

export function createHttp2Client(baseUrl: URL): Http2Client {
  let session: ClientHttp2Session | undefined;

  function current(): ClientHttp2Session {
    if (session !== undefined && !session.closed && !session.destroyed) return session;
    const made = connect(baseUrl);
    // Whoever waits for an answer is told by its stream.
    made.on('error', () => undefined);
    // Streams that began go on; new ones need another connection.
    made.on('goaway', () => made.close());
    session = made;
    return made;
  }

  return {
    async post({ path, headers, body }, signal) {
      if (signal.aborted) return { result: 'not-sent', reason: 'aborted' };
      const over = current();
      const stream = over.request({ ':method': 'POST', ':path': path, ...headers }, { signal });
      stream.end(body);
      try {
        const status = await statusOf(stream);
        return { result: 'answered', status, body: await text(stream) };
      } catch (error) {
        const isUnsent = over.connecting || !wasConnected(over) || stream.rstCode === constants.NGHTTP2_REFUSED_STREAM;
        return { result: isUnsent ? 'not-sent' : 'unknown', reason: codeOf(error) };
      }
    },
    close() {
      session?.destroy();
    },
  };
}

/** A session that has never been connected has no settings of the other side. */
function wasConnected(session: ClientHttp2Session): boolean {
  return session.alpnProtocol !== undefined;
}

function statusOf(stream: ClientHttp2Stream): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  stream.once('response', (fields) => resolve(Number(fields[':status'])));
  stream.once('error', reject);
  stream.once('close', () => reject(new Error('closed')));
  return promise;
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.name === 'AbortError') return 'timeout';
  return 'code' in error && typeof error.code === 'string' ? error.code : 'unknown';
}
