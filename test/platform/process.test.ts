import { freePorts } from '@rollcall/local/ports.ts';
import { operatorConfig } from '@rollcall/operator/config.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import { type ProcessDefinition, type ProcessParts, runProcess } from '@rollcall/platform/process/main.ts';
import type { ProcessConfig } from '@rollcall/platform/process/settings.ts';
import { expect, test } from 'vitest';

function definitionOf(parts: ProcessParts): ProcessDefinition<ProcessConfig> {
  return {
    name: 'sample',
    manifest: new URL('../../package.json', import.meta.url),
    config: operatorConfig,
    isTraced: false,
    parts: async ({ component, hasStarted, isStopping }) => {
      expect([component, hasStarted(), isStopping()]).toEqual(['rollcall-sample', false, false]);
      return parts;
    },
  };
}

/** A part that starts and stops when it is let. */
function heldActor() {
  const started = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined);
  const actor: Actor = {
    name: 'held',
    start: () => started.promise,
    stop: () => stopped.promise,
    failed: failure.promise,
  };
  return { actor, start: started.resolve, stop: stopped.resolve, fail: failure.reject };
}

async function setUp(parts: Partial<ProcessParts> = {}) {
  const [port = 0] = await freePorts(1);
  const held = heldActor();
  const requested = Promise.withResolvers<string>();
  const running = runProcess(definitionOf({ actors: [held.actor], ...parts }), {
    environment: {
      ROLLCALL_HOST: '127.0.0.1',
      ROLLCALL_ADMIN_PORT: String(port),
      ROLLCALL_LOG_LEVEL: 'silent',
    },
    clock: systemClock,
    stopRequested: requested.promise,
  });
  const ask = async (path: string): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined);
    return answer === undefined ? 'closed' : `${answer.status} ${await answer.text()}`;
  };
  return { ...held, requestStop: () => requested.resolve('the test'), running, ask };
}

test('a process says whether it may get traffic: not before all of it has started, and not once it stops', async () => {
  const said: string[] = [];
  const { start, stop, requestStop, running, ask } = await setUp({
    onReady: () => void said.push('ready'),
    onStopping: () => void said.push('stopping'),
  });
  await expect.poll(() => ask('/readyz')).toBe('503 starting');
  expect(await ask('/livez')).toBe('200 ok');
  start();
  await expect.poll(() => ask('/readyz')).toBe('200 ok');
  expect(await ask('/metrics')).toContain('process="sample"');
  expect(said).toEqual(['ready']);
  requestStop();
  await expect.poll(() => ask('/readyz')).toBe('503 stopping');
  expect(said).toEqual(['ready', 'stopping']);
  stop();
  expect(await running).toBe(0);
  expect(await ask('/livez')).toBe('closed');
});

test('a process may wait for more than its parts, and says for what', async () => {
  let missing: string | undefined = 'no copy of the services';
  const { start, stop, requestStop, running, ask } = await setUp({ waitsFor: () => missing });
  start();
  await expect.poll(() => ask('/readyz')).toBe('503 no copy of the services');
  missing = undefined;
  expect(await ask('/readyz')).toBe('200 ok');
  requestStop();
  stop();
  expect(await running).toBe(0);
});

test('a process ends with 1 when a part of it fails, after the others have stopped', async () => {
  const { start, stop, fail, running, ask } = await setUp();
  start();
  await expect.poll(() => ask('/readyz')).toBe('200 ok');
  fail(new Error('lost'));
  stop();
  expect(await running).toBe(1);
  expect(await ask('/livez')).toBe('closed');
});

test('faulty settings are named before anything is started', async () => {
  const environment = { ROLLCALL_ADMIN_PORT: 'many', ROLLCALL_LOG_LEVEL: 'loud' };
  const host = { environment, clock: systemClock, stopRequested: Promise.resolve('at once') };
  const running = runProcess(definitionOf({ actors: [] }), host);
  await expect(running).rejects.toThrow(/ROLLCALL_ADMIN_PORT[^]*ROLLCALL_LOG_LEVEL/);
});
