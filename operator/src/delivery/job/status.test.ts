import { readFile } from 'node:fs/promises';
import type { DeliveryJobStatus, DeliveryPhase } from '@rollcall/crds/types.gen.ts';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import {
  buildAtStage,
  buildCluster,
  buildDeployment,
  buildExtra,
  buildJob,
  buildSnapshot,
  START,
} from '../testing/builders.ts';
import { planJob } from './plan.ts';
import { buildStatus, endStatus } from './status.ts';

interface Schema {
  readonly type?: string;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly pattern?: string;
  readonly enum?: readonly unknown[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

const crd = async (name: string) =>
  parse(await readFile(new URL(`../../../../crds/${name}.yaml`, import.meta.url), 'utf8')).spec.versions[0].schema
    .openAPIV3Schema.properties;
const policySpec: Schema = (await crd('deliverypolicies')).spec;
const schema: Schema = (await crd('deliveryjobs')).status;

/** What an API server would say of a value; unlike it, of unknown fields too. */
function faultsIn(value: unknown, wanted: Schema, path: string): string[] {
  if (Array.isArray(value)) {
    const { items = {}, maxItems = Infinity } = wanted;
    const faults = value.flatMap((item, index) => faultsIn(item, items, `${path}[${index}]`));
    return value.length > maxItems ? [`${path}: too many`, ...faults] : faults;
  }
  if (typeof value === 'object' && value !== null) {
    const { properties = {}, required = [] } = wanted;
    const missing = required.filter((name) => !(name in value)).map((name) => `${path}.${name}: missing`);
    const below = Object.entries(value).filter(([, field]) => field !== undefined);
    return below.reduce((faults, [name, field]) => {
      const known = properties[name];
      return [
        ...faults,
        ...(known === undefined ? [`${path}.${name}: unknown`] : faultsIn(field, known, `${path}.${name}`)),
      ];
    }, missing);
  }
  if (wanted.enum !== undefined) return wanted.enum.includes(value) ? [] : [`${path}: not of the list`];
  if (typeof value === 'number') return value >= (wanted.minimum ?? -Infinity) ? [] : [`${path}: too small`];
  if (typeof value !== 'string') return [`${path}: of a wrong type`];
  const isLong = Array.from(value).length > (wanted.maxLength ?? Infinity);
  const isOther = wanted.pattern !== undefined && !new RegExp(wanted.pattern).test(value);
  return [...(isLong ? [`${path}: too long`] : []), ...(isOther ? [`${path}: of another form`] : [])];
}

const LONG = 'long '.repeat(2000);
const now = new Date(START);

test.for<[string, DeliveryJobStatus]>([
  [
    'every field',
    buildStatus(buildJob(), now, {
      phase: 'Verifying',
      stage: 'Baking',
      message: LONG,
      pods: 'ready',
      fields: {
        startedAt: now.toISOString(),
        strategy: 'BlueGreen',
        step: 0,
        weight: 100,
        oldVersion: LONG,
        workload: { namespace: 'default', name: 'shop', uid: 'uid' },
        stableHash: 'old',
        templateFingerprint: 'a'.repeat(64),
        extraReplicas: 3,
        previousRevision: 7,
        promotedGeneration: 1,
        failure: { reason: 'ChecksFailed', message: LONG },
        analysis: [{ name: 'errors', measurements: 1, failures: 1, lastMeasuredAt: now.toISOString(), message: LONG }],
      },
    }),
  ],
  [
    'the end',
    endStatus(buildJob(), now, {
      phase: 'Failed',
      reason: 'CrashLoop',
      message: LONG,
      failure: { reason: 'CrashLoop', message: LONG },
    }),
  ],
])('the API server accepts a status, however much there is to say: %s', ([, status]) => {
  expect(faultsIn(status, schema, 'status')).toEqual([]);
  expect(status.message).toHaveLength(4096);
});

test('a text is not cut within a character', () => {
  const { message } = buildStatus(buildJob(), now, {
    phase: 'Pending',
    stage: 'Queued',
    message: `x${'😀'.repeat(2048)}`,
  });
  expect(message?.isWellFormed()).toBe(true);
});

const written = (decision: ReturnType<typeof planJob>) =>
  decision.changes.flatMap((change) => (change.action === 'status' ? [change.status] : []));

test('whatever pods, users and services say, a job comes to its end', () => {
  const deployment = buildDeployment({ metadata: { annotations: { 'rollcall.dev/version': LONG } } });
  const begun = planJob(buildSnapshot({ cluster: buildCluster({ deployment }) }));
  const fault = { reason: 'CrashLoop', message: LONG } as const;
  const faulty = buildCluster({ extra: buildExtra(3, { ready: 2, fault }) });
  const undone = planJob(buildAtStage({ strategy: 'BlueGreen', stage: 'BringingUp', cluster: faulty }));
  const health = { status: 'Healthy', reportedAt: now, version: LONG };
  const verifying = planJob(
    buildAtStage({
      strategy: 'Rolling',
      stage: 'Verifying',
      policy: { requireHeartbeat: true },
      snapshot: { registrations: [{ heartbeatAt: now, currentVersion: undefined, health }] },
    }),
  );
  const all = [begun, undone, verifying].flatMap(written);
  expect(all).toHaveLength(3);
  expect(all.map((status) => faultsIn(status, schema, 'status'))).toEqual([[], [], []]);
});

/** What is kept of a job that was at these phases and steps one after the other. */
function keptOf(course: readonly (readonly [DeliveryPhase, number?, number?])[]): unknown[] {
  let job = buildJob();
  for (const [second, [phase, step, weight]] of course.entries()) {
    const at = new Date(START + second * 1000);
    const fields = { ...(step === undefined ? {} : { step }), ...(weight === undefined ? {} : { weight }) };
    job = buildJob({ status: buildStatus(job, at, { phase, stage: phase, message: '', fields }) });
  }
  return (job.status?.milestones ?? []).map(({ at, ...rest }) => ({
    ...rest,
    second: (Date.parse(at) - START) / 1000,
  }));
}

describe('milestones', () => {
  test('every phase at every step is kept once, with its weight and time', () => {
    const course = [
      ['Pending'],
      ['Progressing'],
      ['Progressing', 0, 0],
      ['Progressing', 0, 10],
      ['Paused', 0, 10],
      ['Progressing', 1, 10],
      ['Paused', 1, 50],
      ['RollingBack', 1, 50],
      ['RolledBack', 1, 0],
    ] as const;
    expect(keptOf(course)).toEqual([
      { phase: 'Progressing', second: 1 },
      { phase: 'Progressing', step: 0, weight: 0, second: 2 },
      { phase: 'Paused', step: 0, weight: 10, second: 4 },
      { phase: 'Progressing', step: 1, weight: 10, second: 5 },
      { phase: 'Paused', step: 1, weight: 50, second: 6 },
      { phase: 'RollingBack', step: 1, weight: 50, second: 7 },
    ]);
  });

  test('a policy with all the steps that it may have fits, and what would not is left out', () => {
    const { maxItems = 0 } = schema.properties?.['milestones'] ?? {};
    const { maxItems: stepsMax = 0 } = policySpec.properties?.['canary']?.properties?.['steps'] ?? {};
    expect([maxItems, stepsMax]).not.toContain(0);
    const phases = ['Progressing', 'Verifying', 'Paused'] as const;
    const steps = Array.from({ length: stepsMax }, (_, step) => phases.map((phase) => [phase, step] as const)).flat();
    const course = [['Progressing'] as const, ...steps, ['Promoting', stepsMax - 1] as const];
    expect(keptOf(course)).toHaveLength(course.length);
    const endless = Array.from({ length: maxItems + 50 }, (_, step) => ['Progressing', step] as const);
    expect(keptOf(endless)).toHaveLength(maxItems);
  });
});
