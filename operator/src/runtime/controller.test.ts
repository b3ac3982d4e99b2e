import { setImmediate as nextTurn } from 'node:timers/promises';
import { systemClock } from '@rollcall/platform/clock.ts';
import { serviceKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { KubeApiError, KubeUnreachableError } from '@rollcall/platform/kube/errors.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { StaleError } from './apply.ts';
import { createController, type Reconciler } from './controller.ts';
import { type Change, type Decision, independently, TerminalError } from './decision.ts';
import { createRuntimeMetrics } from './runtime-metrics.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

const change: Change = {
  action: 'event',
  regarding: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'shop' } },
  type: 'Normal',
  reason: 'Tried',
  message: 'tried',
};

interface Setup extends Partial<Reconciler<string>> {
  readonly apply?: (change: Change) => Promise<void>;
}

function setUp({ apply = async () => {}, ...overrides }: Setup = {}) {
  const registry = new Registry();
  const seen: string[] = [];
  const reconciler: Reconciler<string> = {
    name: 'test',
    concurrency: 2,
    keys: () => [],
    observe: (key) => key,
    plan: (key) => {
      seen.push(key);
      return { changes: [] };
    },
    ...overrides,
  };
  const controller = createController(reconciler, {
    applier: { apply },
    clock: systemClock,
    log: createLogger('test', 'silent'),
    metrics: createRuntimeMetrics(registry),
  });
  async function count(metric: string, labels: Record<string, string> = {}): Promise<number> {
    const found = await registry.getSingleMetric(metric)?.get();
    const wanted = Object.entries({ controller: 'test', ...labels });
    return found?.values.find((value) => wanted.every(([name, label]) => value.labels[name] === label))?.value ?? 0;
  }
  return { controller, seen, count };
}

/** Lets the workers have their turns. */
async function settle(): Promise<void> {
  await vi.advanceTimersByTimeAsync(1);
  await nextTurn();
  await nextTurn();
}

test('observes every key at the start, and then at those that are enqueued', async () => {
  const { controller, seen } = setUp({ keys: () => ['a', 'b'] });
  controller.enqueue('too early');
  controller.start();
  await settle();
  controller.enqueue('c');
  await settle();
  expect(seen).toEqual(['a', 'b', 'c']);
  await controller.stop();
  controller.enqueue('too late');
  await settle();
  expect(seen).toEqual(['a', 'b', 'c']);
});

test('works on as many keys at once as it may, and on none twice', async () => {
  const release = Promise.withResolvers<void>();
  const working: string[] = [];
  const { controller } = setUp({
    keys: () => ['a', 'b', 'c'],
    observe: async (key) => {
      working.push(key);
      await release.promise;
      return key;
    },
  });
  controller.start();
  controller.enqueue('a');
  await settle();
  expect(working).toEqual(['a', 'b']);
  release.resolve();
  await settle();
  expect(working).toEqual(['a', 'b', 'c', 'a']);
  await controller.stop();
});

test('observes first what is urgent', async () => {
  const { controller, seen } = setUp({
    concurrency: 1,
    keys: () => ['a', 'b', 'urgent'],
    isUrgent: (key) => key === 'urgent',
  });
  controller.start();
  await settle();
  expect(seen).toEqual(['urgent', 'a', 'b']);
});

test('observes again after the time that the decision asks for', async () => {
  const { controller, seen, count } = setUp({
    keys: () => ['a'],
    plan: (key): Decision => {
      seen.push(key);
      return seen.length === 1 ? { changes: [], requeueAfterMs: 100 } : { changes: [] };
    },
  });
  controller.start();
  await vi.advanceTimersByTimeAsync(99);
  expect(seen).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(2);
  expect(seen).toHaveLength(2);
  expect(await count('controller_runtime_reconcile_total', { result: 'requeue_after' })).toBe(1);
  expect(await count('controller_runtime_reconcile_total', { result: 'success' })).toBe(1);
  await controller.stop();
});

const invalid = new KubeApiError(422, { message: 'spec.url: Invalid value' });
test.each([
  {
    sentence: 'a stale view is observed again',
    error: new StaleError('changed'),
    result: 'requeue',
    errors: 0,
    terminal: 0,
    retried: true,
  },
  {
    sentence: 'an outage is tried again',
    error: new KubeUnreachableError('unreachable'),
    result: 'error',
    errors: 1,
    terminal: 0,
    retried: true,
  },
  {
    sentence: 'a refusal is tried again',
    error: new KubeApiError(403, {}),
    result: 'error',
    errors: 1,
    terminal: 0,
    retried: true,
  },
  {
    sentence: 'a terminal failure waits for the next change',
    error: new TerminalError('no', { cause: invalid }),
    result: 'error',
    errors: 1,
    terminal: 1,
    retried: false,
  },
])('$sentence', async ({ error, result, errors, terminal, retried }) => {
  let failures = 1;
  const { controller, seen, count } = setUp({
    keys: () => ['a'],
    plan: (key): Decision => {
      seen.push(key);
      return { changes: [change] };
    },
    apply: async () => {
      failures -= 1;
      if (failures >= 0) throw error;
    },
  });
  controller.start();
  await settle();
  expect(await count('controller_runtime_reconcile_total', { result })).toBe(1);
  expect(await count('controller_runtime_reconcile_errors_total')).toBe(errors);
  expect(await count('controller_runtime_terminal_reconcile_errors_total')).toBe(terminal);
  await vi.advanceTimersByTimeAsync(1000);
  expect(seen).toHaveLength(retried ? 2 : 1);
  expect(await count('workqueue_retries_total', { name: 'test' })).toBe(retried ? 1 : 0);
  await controller.stop();
});

test('a change that fails ends the decision, and only a whole one counts as applied', async () => {
  const applied: string[] = [];
  let tries = 0;
  const { controller } = setUp({
    keys: () => ['a'],
    plan: () => ({ changes: [change, { ...change, reason: 'Fails' }, { ...change, reason: 'Last' }] }),
    apply: async (next) => {
      tries += 1;
      if (next.action === 'event' && next.reason === 'Fails' && tries === 2) throw new StaleError('changed');
      if (next.action === 'event') applied.push(next.reason);
    },
    onApplied: () => applied.push('all'),
  });
  controller.start();
  await vi.advanceTimersByTimeAsync(100);
  expect(applied).toEqual(['Tried', 'Tried', 'Fails', 'Last', 'all']);
  await controller.stop();
});

const patch = (name: string): Change => ({
  action: 'patch',
  kind: serviceKind,
  object: { apiVersion: 'v1', kind: 'Service', metadata: { name } },
  patch: {},
});

test.each([
  { sentence: 'after a refused one', error: new KubeApiError(403, {}), tried: ['a', 'b', 'c'] },
  { sentence: 'after a rejected one', error: new TerminalError('no'), tried: ['a', 'b', 'c'] },
  { sentence: 'but not without an API server', error: new KubeUnreachableError('unreachable'), tried: ['a'] },
])('independent changes are all tried, $sentence', async ({ error, tried }) => {
  const names: string[] = [];

  const { controller, count } = setUp({
    keys: () => ['a'],
    plan: () => ({ changes: [...independently([patch('a'), patch('b')]), patch('c'), patch('d')] }),
    apply: async (next) => {
      const name = next.action === 'patch' ? next.object.metadata.name : '';
      names.push(name);
      if (name === 'a' || name === 'c') throw error;
    },
  });
  controller.start();
  await settle();
  expect(names).toEqual(tried);
  expect(await count('controller_runtime_reconcile_total', { result: 'error' })).toBe(1);
  await controller.stop();
});

test('stopping waits for the reconcile that is under way', async () => {
  const release = Promise.withResolvers<void>();
  const applied: string[] = [];
  const { controller } = setUp({
    keys: () => ['a'],
    plan: () => ({ changes: [change] }),
    apply: async () => {
      await release.promise;
      applied.push('done');
    },
  });
  controller.start();
  await settle();
  const stopped = controller.stop();
  release.resolve();
  await stopped;
  expect(applied).toEqual(['done']);
});
