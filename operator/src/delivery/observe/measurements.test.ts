import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AnalysisCheck, DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import type { CheckResult, CheckSubject } from '../checks/check.ts';
import type { DueCheck } from '../job/snapshot.ts';
import { createMeasurements } from './measurements.ts';

const now = new Date('2026-01-01T00:00:00Z');
const later = new Date('2026-01-01T00:00:01Z');
const job: DeliveryJob = {
  apiVersion: 'rollcall.dev/v1alpha1',
  kind: 'DeliveryJob',
  metadata: { name: 'a' },
  spec: {
    serviceName: 'shop',
    operation: 'Deploy',
    version: '1',
    artifact: { type: 'image', url: 'shop:1' },
    abort: false,
    promote: false,
  },
};
const subject = (): CheckSubject => ({ job, pods: [] });

function due(name: string, dueAt = now): DueCheck {
  const check: AnalysisCheck = { name, initialDelaySeconds: 0, intervalSeconds: 1, count: 1, failureLimit: 0 };
  return { check, dueAt };
}

interface UnderWay {
  readonly name: string;
  readonly signal: AbortSignal;
  finish(result?: CheckResult): void;
}

function setUp(concurrency = 8) {
  const underWay: UnderWay[] = [];
  const completed: string[] = [];
  const measurements = createMeasurements({
    checkRunner: {
      measure: (check, _, signal) =>
        new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
          const finish = (result: CheckResult = { passed: true, message: 'ok' }) => resolve(result);
          underWay.push({ name: check.name, signal, finish });
        }),
    },
    clock: { now: () => now, monotonicMs: () => 0 },
    concurrency,
    onCompleted: (jobKey) => completed.push(jobKey),
  });
  return { measurements, underWay, completed, names: () => underWay.map(({ name }) => name) };
}

const first = { jobKey: 'ns/a', id: '1' };

test('what is due is measured once, and its result kept until it was recorded', async () => {
  const { measurements, underWay, completed, names } = setUp();
  measurements.start(first, [due('errors'), due('latency', later)], subject);
  measurements.start(first, [due('errors')], subject);
  await nextTurn();
  expect(names()).toEqual(['errors']);
  expect(measurements.completed(first)).toEqual([]);

  underWay[0]?.finish({ passed: false, message: 'too many' });
  await nextTurn();
  const results = [{ check: 'errors', passed: false, at: now, message: 'too many' }];
  expect(completed).toEqual(['ns/a']);
  expect(measurements.completed(first)).toEqual(results);
  measurements.start(first, [due('errors')], subject);
  await nextTurn();
  expect(names()).toEqual(['errors']);

  measurements.recorded('ns/a', measurements.completed(first));
  expect(measurements.completed(first)).toEqual([]);
  measurements.start(first, [due('errors')], subject);
  await nextTurn();
  expect(names()).toEqual(['errors', 'errors']);
});

test('another verification, or a job that is forgotten, cancels what is under way and gets none of its results', async () => {
  const { measurements, underWay, completed } = setUp();
  measurements.start(first, [due('errors')], subject);
  await nextTurn();
  const second = { ...first, id: '2' };
  expect(measurements.completed(second)).toEqual([]);
  expect(underWay[0]?.signal.aborted).toBe(true);
  measurements.start(second, [due('errors')], subject);
  await nextTurn();
  underWay[0]?.finish();
  await nextTurn();
  expect(measurements.completed(second)).toEqual([]);
  measurements.forget('ns/a');
  expect(underWay[1]?.signal.aborted).toBe(true);
  await nextTurn();
  expect(completed).toEqual([]);
});

test('no more are under way than may be, and what is cancelled while it waits never begins', async () => {
  const { measurements, underWay, names } = setUp(2);
  measurements.start(first, [due('a'), due('b'), due('c')], subject);
  measurements.start({ jobKey: 'ns/b', id: '1' }, [due('d')], subject);
  await nextTurn();
  expect(names()).toEqual(['a', 'b']);
  underWay[0]?.finish();
  await nextTurn();
  expect(names()).toEqual(['a', 'b', 'c']);
  measurements.forget('ns/b');
  underWay[1]?.finish();
  underWay[2]?.finish();
  await nextTurn();
  expect(names()).toEqual(['a', 'b', 'c']);
  measurements.start({ jobKey: 'ns/e', id: '1' }, [due('e'), due('f')], subject);
  await nextTurn();
  expect(names()).toEqual(['a', 'b', 'c', 'e', 'f']);
});

test('stopping cancels everything and lets nothing begin', async () => {
  const { measurements, underWay, names, completed } = setUp();
  measurements.start(first, [due('a')], subject);
  await nextTurn();
  await measurements.stop();
  expect(underWay[0]?.signal.aborted).toBe(true);
  measurements.start(first, [due('b')], subject);
  await nextTurn();
  expect(names()).toEqual(['a']);
  expect(completed).toEqual([]);
});
