import { type HttpAnswer, NoAnswerError } from '@rollcall/platform/outbound/exchange.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { Registry } from 'prom-client';
import { beforeEach, expect, test } from 'vitest';
import { createTraffic, type Traffic } from './traffic.ts';

const SHOP = { subgraph: 'shop', urls: ['http://a/graphql', 'http://b/graphql'] };
const forEver = new AbortController().signal;
let nowMs: number;
let inGraph: Set<string>;
let traffic: Traffic;
let metrics: Registry;

beforeEach(() => {
  nowMs = 0;
  inGraph = new Set(['shop']);
  metrics = new Registry();
  traffic = createTraffic({
    clock: { now: () => new Date(nowMs), monotonicMs: () => nowMs },
    log: createLogger('test', 'silent'),
    metrics,
    isKnown: (name) => inGraph.has(name),
    mostCalls: 10,
    timeoutMs: 10_000,
  });
});

const answer = (status: number) => async (): Promise<HttpAnswer> => ({
  status,
  headers: {},
  body: '{}',
  allHeaders: {},
  isUtf8: true,
  cut: false,
  tookMs: 1,
});
const noAnswer = async (): Promise<HttpAnswer> => {
  throw new NoAnswerError('no answer', undefined);
};

async function fail(times: number, call = noAnswer): Promise<void> {
  for (let time = 0; time < times; time += 1) await traffic.pass(SHOP, call, forEver).catch(() => undefined);
}

const passes = () =>
  traffic.pass(SHOP, answer(200), forEver).then(
    () => true,
    () => false,
  );

test.each([
  ['no answer', noAnswer],
  ['502', answer(502)],
  ['503', answer(503)],
  ['504', answer(504)],
])('five times %s, and it is left alone until the pause is over', async (_, call) => {
  await fail(4, call);
  expect(await passes()).toBe(true);
  await fail(5, call);
  nowMs += 499;
  expect(await passes()).toBe(false);
  nowMs += 1;
  expect(await passes()).toBe(true);
});

test.each([200, 400, 401, 404, 429, 500])('answers with %i may be the fault of who asks', async (status) => {
  await fail(20, answer(status));
  expect(await passes()).toBe(true);
});

test('who leaves says nothing of the service', async () => {
  const leaving = new AbortController();
  const left = async (): Promise<HttpAnswer> => {
    leaving.abort(new Error('left'));
    throw new NoAnswerError('aborted', leaving.signal.reason);
  };
  for (let time = 0; time < 20; time += 1) await traffic.pass(SHOP, left, leaving.signal).catch(() => undefined);
  expect(await passes()).toBe(true);
});

test('a pause is never longer than five seconds', async () => {
  for (let time = 0; time < 20; time += 1) {
    await fail(5);
    nowMs += 5000;
  }
  expect(await passes()).toBe(true);
});

test('at another place it is another service, in whatever order its URLs come', async () => {
  await fail(5);
  expect(await passes()).toBe(false);
  const turned = { ...SHOP, urls: SHOP.urls.toReversed() };
  await expect(traffic.pass(turned, answer(200), forEver)).rejects.toThrow('not asked');
  const moved = { ...SHOP, urls: ['http://c/graphql'] };
  expect((await traffic.pass(moved, answer(200), forEver)).status).toBe(200);
});

test('what became of calls is counted by service', async () => {
  await fail(5);
  await passes();
  traffic.shared('shop');
  const text = await metrics.metrics();
  expect(text).toContain('rollcall_federation_call_duration_seconds_count{service="shop",outcome="failed"} 5');
  expect(text).toContain('rollcall_federation_refused_calls_total{service="shop",reason="failing"} 1');
  expect(text).toContain('rollcall_federation_shared_calls_total{service="shop"} 1');
});

test('who leaves gives its place in the line to another', async () => {
  const { promise, resolve } = Promise.withResolvers<HttpAnswer>();
  const begun = Array.from({ length: 10 }, () => traffic.pass(SHOP, () => promise, forEver));
  const leaving = new AbortController();
  const waiting = Array.from({ length: 100 }, () => traffic.pass(SHOP, answer(200), leaving.signal));
  await expect(traffic.pass(SHOP, answer(200), forEver)).rejects.toMatchObject({
    extensions: { code: 'SUBGRAPH_BUSY' },
  });
  const left = new Error('left');
  leaving.abort(left);
  for (const each of waiting) await expect(each).rejects.toBe(left);
  const last = traffic.pass(SHOP, answer(200), forEver);
  resolve(await answer(200)());
  for (const each of [...begun, last]) expect((await each).status).toBe(200);
  const counted = 'rollcall_federation_refused_calls_total{service="shop",reason="busy"} 1';
  expect(await metrics.metrics()).toContain(counted);
});
