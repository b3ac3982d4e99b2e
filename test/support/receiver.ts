import { createServer, type IncomingHttpHeaders } from 'node:http';

interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** How a request is answered. */
type Answer = number | 'hang' | { readonly status: number; readonly retryAfter: string };

/** An HTTP server that notifications are sent to. */
export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly received: readonly Received[];
  /**
   * How requests are answered, in their order; the last one is for all that follow.
   */
  answer(...answers: readonly Answer[]): void;
}

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  let answers: Answer[] = [200];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({ path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() });
      const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? 200;
      if (answer === 'hang') return;
      const { status, retryAfter } = typeof answer === 'number' ? { status: answer, retryAfter: undefined } : answer;
      const isRedirect = status >= 300 && status < 400;
      response.writeHead(status, {
        ...(isRedirect ? { location: '/redirected' } : {}),
        ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
      });
      response.end('x'.repeat(100_000));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The receiver has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    received,
    answer: (...next) => {
      answers = [...next];
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
