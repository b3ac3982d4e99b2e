import type { IncomingHttpHeaders } from 'node:http';
import { fastify } from 'fastify';

/** Takes notifications as one of our services would, on 127.0.0.1. */
export interface Receiver extends AsyncDisposable {
  /** Without a slash at its end; any path is taken. */
  readonly url: string;
  /** What it answers to the next ones; 200 where none is left. */
  readonly answers: number[];
  readonly taken: readonly TakenNotification[];
}

interface TakenNotification {
  /** With the query. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  /** As it came. */
  readonly body: string;
}

export async function startReceiver(): Promise<Receiver> {
  const taken: TakenNotification[] = [];
  const answers: number[] = [];
  const app = fastify({ forceCloseConnections: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.post<{ Body: string }>('/*', async (request, reply) => {
    taken.push({ target: request.url, headers: request.headers, body: request.body });
    return await reply.code(answers.shift() ?? 200).send();
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  return { url, answers, taken, [Symbol.asyncDispose]: () => app.close() };
}
