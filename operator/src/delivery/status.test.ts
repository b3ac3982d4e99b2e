import { readFile } from 'node:fs/promises';
import type { DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import {
  buildAtStage,
  buildCluster,
  buildDeployment,
  buildExtra,
  buildJob,
  buildSnapshot,
  START,
} from './model/build.ts';
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

const definition = parse(await readFile(new URL('../../../crds/deliveryjobs.yaml', import.meta.url), 'utf8'));
const schema: Schema = definition.spec.versions[0].schema.openAPIV3Schema.properties.status;

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
])('the API server takes a status, however much there is to say: %s', ([, status]) => {
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
      snapshot: { registration: { heartbeatAt: now, currentVersion: undefined, health } },
    }),
  );
  const all = [begun, undone, verifying].flatMap(written);
  expect(all).toHaveLength(3);
  expect(all.map((status) => faultsIn(status, schema, 'status'))).toEqual([[], [], []]);
});
