import { expect, test } from 'vitest';
import { type Actor, runActors } from './lifecycle.ts';
import { createLogger } from './log.ts';

const log = createLogger('test', 'silent');

function recorder() {
  const calls: string[] = [];
  const actor = (name: string, overrides: Partial<Actor> = {}): Actor => ({
    name,
    start: async () => void calls.push(`start ${name}`),
    stop: async () => void calls.push(`stop ${name}`),
    ...overrides,
  });
  return { calls, actor };
}

test('starts in order, stops in reverse, exits 0 on request', async () => {
  const { calls, actor } = recorder();
  const { promise, resolve } = Promise.withResolvers<string>();
  const code = runActors([actor('a'), actor('b')], {
    log,
    graceMs: 1000,
    stopRequested: promise,
    onReady: () => resolve('SIGTERM'),
  });
  expect(await code).toBe(0);
  expect(calls).toEqual(['start a', 'start b', 'stop b', 'stop a']);
});

test('stops what had been started when a later actor fails to start', async () => {
  const { calls, actor } = recorder();
  const failing = actor('b', { start: () => Promise.reject(new Error('no port')) });
  const code = await runActors([actor('a'), failing, actor('c')], {
    log,
    graceMs: 1000,
    stopRequested: new Promise(() => {}),
  });
  expect(code).toBe(1);
  expect(calls).toEqual(['start a', 'stop b', 'stop a']);
});

test('the failure of a running actor stops all', async () => {
  const { calls, actor } = recorder();
  const { promise, reject } = Promise.withResolvers<never>();
  const code = await runActors([actor('a'), actor('lease', { failed: promise })], {
    log,
    graceMs: 1000,
    stopRequested: new Promise(() => {}),
    onReady: () => reject(new Error('lease lost')),
  });
  expect(code).toBe(1);
  expect(calls.slice(2)).toEqual(['stop lease', 'stop a']);
});

test('the failure of a started actor is noticed while a later one still starts', async () => {
  const { calls, actor } = recorder();
  const { promise, reject } = Promise.withResolvers<never>();
  const waiting = actor('b', {
    start: () => {
      reject(new Error('lease lost'));
      return new Promise(() => {});
    },
  });
  const code = await runActors([actor('a', { failed: promise }), waiting], {
    log,
    graceMs: 1000,
    stopRequested: new Promise(() => {}),
  });
  expect(code).toBe(1);
  expect(calls).toEqual(['start a', 'stop b', 'stop a']);
});

test('a stop that is requested while actors start stops what had begun to start', async () => {
  const { calls, actor } = recorder();
  const waiting = actor('b', { start: () => new Promise(() => {}) });
  const code = await runActors([actor('a'), waiting, actor('c')], {
    log,
    graceMs: 1000,
    stopRequested: Promise.resolve('SIGTERM'),
  });
  expect(code).toBe(0);
  expect(calls).toContain('stop a');
  expect(calls).not.toContain('start c');
});

test('an actor that throws while it stops does not keep the others from stopping', async () => {
  const { calls, actor } = recorder();
  const failing = actor('b', { stop: () => Promise.reject(new Error('stuck')) });
  const code = await runActors([actor('a'), failing], {
    log,
    graceMs: 1000,
    stopRequested: new Promise((resolve) => void setTimeout(resolve, 20, 'SIGTERM')),
  });
  expect(code).toBe(0);
  expect(calls).toContain('stop a');
});

test('gives up on an actor that does not stop within the grace', async () => {
  const { actor } = recorder();
  const stuck = actor('stuck', { stop: () => new Promise(() => {}) });
  const code = await runActors([stuck], { log, graceMs: 10, stopRequested: Promise.resolve('SIGTERM') });
  expect(code).toBe(1);
});

test('stops nothing after a failure that forbids to go on even for that', async () => {
  const { calls, actor } = recorder();
  const lost = new Error('lease lost');
  const code = await runActors([actor('a'), actor('lease', { failed: Promise.reject(lost) })], {
    log,
    graceMs: 1000,
    stopRequested: new Promise(() => {}),
    mustAbandon: (failure) => failure === lost,
  });
  expect(code).toBe(1);
  expect(calls).toEqual(['start a', 'start lease']);
});
