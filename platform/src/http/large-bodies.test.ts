import { once } from 'node:events';
import { type ClientRequest, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../process/log.ts';
import { codedErrorBody } from './errors.ts';
import { identityHeaders } from './identity.ts';
import { LARGE_BYTES, limitLargeBodies } from './large-bodies.ts';
import { createServer } from './server.ts';
import { answerToServiceError } from './service-errors.ts';

const LARGE = JSON.stringify('x'.repeat(LARGE_BYTES));

async function answerOf(asked: ClientRequest) {
  const [response] = await once(asked, 'response');
  return { status: response.statusCode, retryAfter: response.headers['retry-after'], body: await text(response) };
}

/** A server whose handler answers when it is told to, and says how many bodies it has. */
async function startServer(maxWaitMs = 60_000) {
  const app = createServer({
    log: createLogger('test', 'silent'),
    metrics: new Registry(),
    bodyLimit: 2 * LARGE_BYTES,
    closingLimitMs: 100,
    mapError: answerToServiceError,
    renderError: codedErrorBody,
  });
  limitLargeBodies(app, { maxWaitMs });
  const served: (() => void)[] = [];
  const serve = async () => {
    await new Promise<void>((resolve) => void served.push(resolve));
    return 'taken';
  };
  app.post('/', serve);
  app.post('/small', { bodyLimit: 1000 }, serve);
  const lost = { begun: 0, over: 0 };
  const whoCalls = async (_request: unknown, { raw }: { readonly raw: ServerResponse }) => {
    lost.begun += 1;
    await once(raw, 'close');
    lost.over += 1;
  };
  app.post('/lost', { onRequest: whoCalls }, serve);
  onTestFinished(async () => {
    for (const answer of served) answer();
    await app.close();
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;

  function begin(subject: string, headers: Readonly<Record<string, string>> = {}, path = '/'): ClientRequest {
    const token = `e30.${Buffer.from(JSON.stringify({ sub: subject })).toString('base64url')}.x`;
    const type = { 'content-type': 'application/json', [identityHeaders.token]: token, ...headers };
    const asked = request({ port, path, host: '127.0.0.1', method: 'POST', agent: false, headers: type });
    asked.on('error', () => {});
    return asked;
  }
  function send(subject: string, body = LARGE, headers = {}) {
    const asked = begin(subject, { 'content-length': String(Buffer.byteLength(body)), ...headers });
    const answer = answerOf(asked);
    asked.end(body);
    return { asked, answer };
  }
  return { served, lost, begin, send };
}

const POLL = { timeout: 20_000 };

test('few large bodies are served at a time, one of a subject, and small ones beside them', async () => {
  const { served, send } = await startServer();
  const all = ['one', 'one', 'two', 'three'].map((subject) => send(subject).answer);
  await expect.poll(() => served.length, POLL).toBe(2);
  const small = Array.from({ length: 10 }, () => send('one', '"small"').answer);
  await expect.poll(() => served.length, POLL).toBe(12);
  for (const answer of served) answer();
  await expect.poll(() => served.length, POLL).toBe(14);
  for (const answer of served) answer();
  for (const answer of [...all, ...small]) expect(await answer).toMatchObject({ status: 200, body: 'taken' });
});

test('a body whose length is not said waits as a large one does', async () => {
  const { served, send, begin } = await startServer();
  const large = send('one').answer;
  await expect.poll(() => served.length, POLL).toBe(1);
  const chunked = begin('one', { 'transfer-encoding': 'chunked' });
  const answer = answerOf(chunked);
  chunked.end('"small"');
  const other = send('two').answer;
  await expect.poll(() => served.length, POLL).toBe(2);
  for (const each of served) each();
  await expect.poll(() => served.length, POLL).toBe(3);
  for (const each of served) each();
  for (const each of [large, other, answer]) expect(await each).toMatchObject({ status: 200 });
});

test('who breaks off leaves the turn to others, before and after it came', async () => {
  const { served, send, begin } = await startServer();
  const broken = begin('one', { 'content-length': String(LARGE.length) });
  broken.write(LARGE.slice(0, 1000));
  const waiting = send('one');
  waiting.answer.catch(() => {});
  const last = send('one').answer;
  waiting.asked.destroy();
  broken.destroy();
  let status: number | undefined;
  void last.then((answer) => (status = answer.status));
  await expect
    .poll(() => {
      for (const answer of served) answer();
      return status;
    }, POLL)
    .toBe(200);
});

test('bodies of routes that take no large ones do not wait', async () => {
  const { served, begin } = await startServer();
  const answers = Array.from({ length: 3 }, () => {
    const chunked = begin('one', { 'transfer-encoding': 'chunked' }, '/small');
    chunked.end('"small"');
    return answerOf(chunked);
  });
  await expect.poll(() => served.length, POLL).toBe(3);
  for (const each of served) each();
  for (const each of answers) expect(await each).toMatchObject({ status: 200 });
});

test('who breaks off before the turn is asked for keeps none', async () => {
  const { served, lost, begin, send } = await startServer();
  const broken = begin('one', { 'content-length': String(LARGE.length) }, '/lost');
  broken.write(LARGE.slice(0, 1000));
  await expect.poll(() => lost.begun, POLL).toBe(1);
  broken.destroy();
  await expect.poll(() => lost.over, POLL).toBe(1);
  const answer = send('one').answer;
  await expect.poll(() => served.length, POLL).toBe(1);
  for (const each of served) each();
  expect(await answer).toMatchObject({ status: 200 });
});

test('whose turn does not come is told to try again', async () => {
  const { served, send } = await startServer(50);
  const first = send('one').answer;
  await expect.poll(() => served.length, POLL).toBe(1);
  const { status, retryAfter, body } = await send('one').answer;
  expect({ status, retryAfter }).toEqual({ status: 503, retryAfter: '5' });
  expect(JSON.parse(body)).toMatchObject({ error: { code: 'UNAVAILABLE', message: expect.stringContaining('large') } });
  for (const each of served) each();
  expect(await first).toMatchObject({ status: 200 });
});
