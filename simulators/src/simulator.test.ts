import { errorMessage } from '@rollcall/platform/errors.ts';
import type { FastifyInstance } from 'fastify';
import { request } from 'undici';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Notification } from './notifier.ts';
import { type SimulationContext, type Simulator, startSimulator } from './simulator.ts';
import { type Receiver, startReceiver } from './testing/receiver.ts';

/** A provider of one operation: it takes an order, and says twice what became of it. */
let orders: string[];
let simulator: Simulator;
let receiver: Receiver;
/** Where notifications go. */
let target: string;

beforeEach(async () => {
  orders = [];
  receiver = await startReceiver();
  target = receiver.url;
  simulator = await startSimulator(
    {
      name: 'shop',
      routes: addOrders,
      credentials: (url) => ({ url, key: 'k' }),
      state: () => orders,
      reset: () => {
        orders = [];
      },
      setWebhook: (url) => {
        target = url;
      },
      outcomes: ['sold-out'],
      errorBody: (status) => ({ shop: status }),
      retryDelaysMs: [],
    },
    { retryDelaysMs: [300, 20] },
  );
});

afterEach(async () => {
  await simulator.stop();
  await receiver[Symbol.asyncDispose]();
});

describe('requests', () => {
  test('are answered and kept, with the bytes that came as text', async () => {
    const answer = await order('apples=1%2B1');
    expect(answer).toEqual({ status: 201, body: '{"ordered":"apples=1%2B1","id":"1"}' });
    expect(simulator.requests()).toMatchObject([
      { method: 'POST', target: '/orders', body: 'apples=1+1', status: 201, isAccepted: true, fault: undefined },
    ]);
  });

  test('that hang have taken effect, and are not answered', async () => {
    simulator.addFaults({ kind: 'accept-and-hang' });
    await expect(order('a', 2000)).rejects.toThrow(/abort|timeout/i);
    await expect.poll(() => orders).toEqual(['a']);
    expect(simulator.requests()).toMatchObject([{ isAccepted: true, status: 201, fault: 'accept-and-hang' }]);
  });

  test.each([
    { status: 500, retryAfter: undefined },
    { status: 503, retryAfter: 3 },
    { status: 429, retryAfter: 'Fri, 20 Nov 2026 10:00:30 GMT' },
  ])('are refused with $status and Retry-After $retryAfter, without an effect', async ({ status, retryAfter }) => {
    simulator.addFaults({ kind: 'status', status, times: 1, ...(retryAfter === undefined ? {} : { retryAfter }) });
    const answer = await post(`${simulator.url}/orders`, 'a');
    expect(answer.statusCode).toBe(status);
    expect(answer.headers['retry-after']).toBe(retryAfter?.toString());
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
    expect(await answer.body.json()).toEqual({ shop: status });
    expect(orders).toEqual([]);
    expect(simulator.requests()).toMatchObject([{ isAccepted: false, status: undefined }]);
    expect(await order('a')).toMatchObject({ status: 201 });
  });

  test('are answered with 500 after they took effect, where that is asked for', async () => {
    simulator.addFaults({ kind: 'status', status: 500, isTaken: true });
    expect(await order('a')).toEqual({ status: 500, body: '{"shop":500}' });
    expect(simulator.requests()).toMatchObject([{ isAccepted: true, status: 201 }]);
  });

  test('are answered with something that is no JSON', async () => {
    simulator.addFaults({ kind: 'garbage' });
    const { status, body } = await order('a');
    expect(status).toBe(200);
    expect(() => JSON.parse(body)).toThrow(SyntaxError);
    expect(orders).toEqual(['a']);
  });

  test('are answered with ids that end in no character', async () => {
    simulator.addFaults({ kind: 'broken-ids' });
    expect(await order('a')).toEqual({ status: 201, body: String.raw`{"ordered":"a","id":"1\ud83d\u0000"}` });
  });

  test.each(['a', ''])('get half of the answer, and then no connection (order "%s")', async (what) => {
    simulator.addFaults({ kind: 'half-body' });
    const answer = await post(`${simulator.url}/orders`, what);
    expect(answer.statusCode).toBe(what === '' ? 202 : 201);
    await expect(answer.body.text()).rejects.toThrow(/closed|terminated/);
  });

  test('get a reset, whether they took effect or not', async () => {
    simulator.addFaults({ kind: 'reset', times: 1 }, { kind: 'reset', isTaken: false });
    await expect(order('a')).rejects.toMatchObject({ code: 'ECONNRESET' });
    await expect(order('b')).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(orders).toEqual(['a']);
    expect(simulator.requests().map(({ isAccepted }) => isAccepted)).toEqual([true, false]);
  });

  test('are answered late', async () => {
    simulator.addFaults({ kind: 'slow', delayMs: 150 });
    const begun = performance.now();
    expect(await order('a')).toMatchObject({ status: 201 });
    expect(performance.now() - begun).toBeGreaterThan(140);
  });

  test('meet a fault that matches, as often as it says', async () => {
    simulator.addFaults({ kind: 'status', match: 'plums=+', times: 2 });
    const statuses = [];
    for (const what of ['plums=%2B1', 'pears', 'plums=%2B2', 'plums=%2B3']) statuses.push((await order(what)).status);
    expect(statuses).toEqual([503, 201, 503, 201]);
  });
});

describe('notifications', () => {
  test('follow the answer, one after the other', async () => {
    await order('a');
    await simulator.idle();
    expect(said()).toEqual(['a packed', 'a sent']);
    expect(signatures()).toEqual(['good', 'good']);
    expect(simulator.notifications()).toMatchObject([{ status: 200, attempt: 1, body: 'a packed' }, { status: 200 }]);
  });

  test.each([
    ['twice', ['a packed', 'a packed', 'a sent', 'a sent']],
    ['out-of-order', ['a sent', 'a packed']],
    ['never', []],
  ] as const)('%s', async (kind, expected) => {
    simulator.addFaults({ kind, times: 1 });
    await order('a');
    await simulator.idle();
    expect(said()).toEqual(expected);
  });

  test('have a bad signature', async () => {
    simulator.addFaults({ kind: 'bad-signature' });
    await order('a');
    await simulator.idle();
    expect(signatures()).toEqual(['bad', 'bad']);
  });

  test('come before the answer', async () => {
    simulator.addFaults({ kind: 'before-the-answer' });
    await order('a');
    expect(said()).toEqual(['a packed', 'a sent']);
  });

  test('come before the answer where the provider does so, which does not wait for repetitions', async () => {
    receiver.answers.push(500);
    expect(await order('express')).toMatchObject({ status: 201 });
    expect(said()).toEqual(['express packed', 'express sent']);
    await simulator.idle();
    expect(said()).toEqual(['express packed', 'express sent', 'express packed']);
  });

  test.each(['wrong-amount', 'wrong-merchant'] as const)('say something wrong: %s', async (kind) => {
    simulator.addFaults({ kind, times: 1 });
    await order('a');
    await simulator.idle();
    expect(said()).toEqual([`a packed, ${kind}`, `a sent, ${kind}`]);
    expect(signatures()).toEqual(['good', 'good']);
  });

  test('come late', async () => {
    simulator.addFaults({ kind: 'delayed', delayMs: 150 });
    const begun = performance.now();
    await order('a');
    await simulator.idle();
    expect(said()).toHaveLength(2);
    expect(performance.now() - begun).toBeGreaterThan(140);
  });

  test('come although the answer hangs', async () => {
    simulator.addFaults({ kind: 'accept-and-hang' });
    const hanging = order('a').catch(errorMessage);
    await expect.poll(said).toHaveLength(2);
    await simulator.stop();
    expect(await hanging).toMatch(/closed/);
  });

  test('are sent again until they are taken, or no time is left', async () => {
    receiver.answers.push(500, 404, 200);
    await order('a');
    await simulator.idle();
    expect(said()).toEqual(['a packed', 'a packed', 'a packed', 'a sent']);
    expect(simulator.notifications().map(({ attempt }) => attempt)).toEqual([1, 2, 3, 1]);
    receiver.answers.push(500, 500, 500, 500, 500, 500);
    await order('b');
    await simulator.idle();
    expect(said().slice(4)).toEqual(['b packed', 'b packed', 'b packed', 'b sent', 'b sent', 'b sent']);
  });

  test('never leave this machine', async () => {
    target = 'http://192.0.2.1/';
    await order('a');
    await simulator.idle();
    expect(simulator.notifications()).toHaveLength(6);
    expect(new Set(simulator.notifications().map(({ error }) => error))).toEqual(
      new Set(['192.0.2.1 is not this machine']),
    );
  });
});

describe('the control API', () => {
  test('takes one fault or several', async () => {
    expect((await control('POST', '/faults', { kind: 'status', status: 500, times: 1 })).statusCode).toBe(204);
    expect((await control('POST', '/faults', [{ kind: 'status', status: 429 }])).statusCode).toBe(204);
    expect((await order('a')).status).toBe(500);
    expect((await order('a')).status).toBe(429);
  });

  test.each([{ kind: 'sulk' }, { kind: 'slow', delayMs: -1 }, { kind: 'slow', how: 1 }, 'slow', null])(
    'refuses %j as a fault, with the whole list',
    async (fault) => {
      const answer = await control('POST', '/faults', [{ kind: 'status' }, fault]);
      expect(answer.statusCode).toBe(400);
      expect(await answer.body.json()).toEqual({ error: expect.stringMatching(/^no fault: /) });
      expect((await order('a')).status).toBe(201);
    },
  );

  test('says what shall become of a recipient, in words that the provider knows', async () => {
    expect((await control('PUT', '/outcomes', { pears: 'sold-out' })).statusCode).toBe(204);
    expect((await order('pears')).status).toBe(410);
    expect((await order('plums')).status).toBe(201);
    for (const outcomes of [{ pears: 'rotten' }, { pears: 1 }, [], null]) {
      expect((await control('PUT', '/outcomes', outcomes)).statusCode).toBe(400);
    }
  });

  test('says where notifications go, and which text is no place', async () => {
    expect((await control('PUT', '/webhook', { url: `${receiver.url}/elsewhere` })).statusCode).toBe(204);
    for (const webhook of [{ url: 'elsewhere' }, { url: 1 }, {}, null]) {
      expect((await control('PUT', '/webhook', webhook)).statusCode).toBe(400);
    }
    await order('a');
    await simulator.idle();
    expect(receiver.taken.map(({ target: path }) => path)).toEqual(['/elsewhere', '/elsewhere']);
  });

  test('shows what came, what was said, what is held, and how to be a client', async () => {
    await order('a');
    await simulator.idle();
    expect(await shown('/requests')).toMatchObject([{ target: '/orders', body: 'a=', isAccepted: true }]);
    expect(await shown('/notifications')).toMatchObject([{ body: 'a packed' }, { body: 'a sent' }]);
    expect(await shown('/state')).toEqual(['a']);
    expect(await shown('/credentials')).toEqual({ url: simulator.url, key: 'k' });
  });

  test('forgets everything, and drops what was to be sent', async () => {
    simulator.addFaults({ kind: 'delayed', delayMs: 60_000 }, { kind: 'status', status: 500, match: 'b' });
    simulator.setOutcomes({ c: 'sold-out' });
    await order('a');
    expect((await control('DELETE', '')).statusCode).toBe(204);
    await simulator.idle();
    expect(simulator.requests()).toEqual([]);
    expect(orders).toEqual([]);
    expect(said()).toEqual([]);
    for (const what of ['b', 'c']) expect((await order(what)).status).toBe(201);
  });
});

const said = () => receiver.taken.map(({ body }) => body);
const signatures = () => receiver.taken.map(({ headers }) => headers['signature']);
const shown = async (path: string) => await (await control('GET', path)).body.json();
const control = (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown) =>
  request(`${simulator.url}/_control${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });

function addOrders(app: FastifyInstance, { notify, outcomeOf }: SimulationContext): void {
  app.post<{ Body: Buffer | undefined }>('/orders', async (request, reply) => {
    const what = request.body?.toString('utf8') ?? '';
    if (outcomeOf(what) === 'sold-out') return await reply.code(410).send();
    if (what === '') return await reply.code(202).send();
    orders.push(what);
    const say =
      (word: string): Notification =>
      ({ isForged, wrong }) => ({
        url: target,
        headers: { 'content-type': 'text/plain', signature: isForged ? 'bad' : 'good' },
        body: `${what} ${word}${wrong === undefined ? '' : `, ${wrong}`}`,
      });
    await notify(request, [say('packed'), say('sent')], { isBeforeTheAnswer: what === 'express' });
    return await reply.code(201).send({ ordered: what, id: '1' });
  });
}

async function order(what: string, timeoutMs = 10_000): Promise<{ status: number; body: string }> {
  const { statusCode, body } = await post(`${simulator.url}/orders`, what, timeoutMs);
  return { status: statusCode, body: await body.text() };
}

async function post(url: string, body: string, timeoutMs = 10_000) {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  return await request(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(timeoutMs) });
}
