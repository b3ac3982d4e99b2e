import { once } from 'node:events';
import {
  connect,
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startProxy, TOKEN } from './grpc-fixture.ts';

/** By itself Node drops fields with white space at an end. */
const LAX = { strictFieldWhitespaceValidation: false };
const HEAD = { ':status': 200, 'content-type': 'application/grpc' };

interface Exchange {
  /** What the service got. */
  readonly received: IncomingHttpHeaders;
  /** What the caller got. */
  readonly head: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  readonly metrics: string;
}

/** One call through the gateway to a service that answers with these fields. */
async function exchange(
  sent: OutgoingHttpHeaders,
  { head, trailers }: { readonly head?: OutgoingHttpHeaders; readonly trailers: OutgoingHttpHeaders },
): Promise<Exchange> {
  const service = createServer(LAX);
  const received = new Promise<IncomingHttpHeaders>((resolve) => {
    service.on('stream', (stream: ServerHttp2Stream, headers) => {
      resolve(headers);
      stream.respond({ ...HEAD, ...head }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers(trailers));
      stream.end();
    });
  });
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  onTestFinished(() => void service.close());
  await using proxy = await startProxy({ backendPort: (service.address() as AddressInfo).port });
  const session = connect(`http://127.0.0.1:${proxy.port}`, LAX);
  onTestFinished(() => session.destroy());
  const stream = session.request({
    ':method': 'POST',
    ':path': '/rollcall.test.v1.Echo/Unary',
    'content-type': 'application/grpc',
    authorization: `Bearer ${TOKEN}`,
    ...sent,
  });
  const ended = once(stream, 'trailers');
  stream.end();
  const [answered] = (await once(stream, 'response')) as [IncomingHttpHeaders];
  stream.resume();
  const [final] = (await ended) as [IncomingHttpHeaders];
  return { received: await received, head: answered, trailers: final, metrics: await proxy.metrics.metrics() };
}

test('values with white space at an end arrive at both sides as they were sent', async () => {
  const trailers = { 'grpc-status': '3', 'grpc-message': 'quota exceeded ', 'x-t': ' v' };
  const answer = await exchange({ 'x-a': 'v ', 'x-b': '\tv' }, { head: { 'x-h': 'v ' }, trailers });
  expect(answer.received).toMatchObject({ 'x-a': 'v ', 'x-b': '\tv' });
  expect(answer.head).toMatchObject({ 'x-h': 'v ' });
  expect(answer.trailers).toMatchObject(trailers);
});

test('what the gateway reads it reads without white space around it', async () => {
  const sent = { authorization: ` Bearer ${TOKEN} `, 'grpc-timeout': '1S ', 'x-request-id': 'mine ' };
  const { received, trailers, metrics } = await exchange(sent, { trailers: { 'grpc-status': '0 ' } });
  expect(received).toMatchObject({ 'grpc-timeout': expect.stringMatching(/^\d+u$/), 'x-request-id': 'mine' });
  expect(trailers).toMatchObject({ 'grpc-status': '0 ' });
  expect(metrics).toMatch(/_grpc_calls_total\{service="rollcall.test",code="OK".*\} 1/);
});
