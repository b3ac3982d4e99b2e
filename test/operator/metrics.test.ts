import { expect, test } from 'vitest';
import { createWorld, register, startOperator, until, untilPhase } from './fixtures.ts';

const NAMES = [
  'controller_runtime_reconcile_total{controller="registration",result="success"',
  'controller_runtime_reconcile_total{controller="registration",result="error"',
  'controller_runtime_reconcile_total{controller="registration",result="requeue"',
  'controller_runtime_reconcile_total{controller="registration",result="requeue_after"',
  'controller_runtime_reconcile_errors_total{controller="registration"',
  'controller_runtime_terminal_reconcile_errors_total{controller="registration"',
  'controller_runtime_reconcile_time_seconds_bucket{le="0.005",',
  'controller_runtime_max_concurrent_reconciles{controller="registration"',
  'controller_runtime_active_workers{controller="registration"',
  'workqueue_depth{name="registration",controller="registration"',
  'workqueue_adds_total{name="registration",controller="registration"',
  'workqueue_queue_duration_seconds_bucket{le="0.001",',
  'workqueue_work_duration_seconds_bucket{le="0.001",',
  'workqueue_retries_total{name="registration",controller="registration"',
  'workqueue_unfinished_work_seconds{name="registration",controller="registration"',
  'workqueue_longest_running_processor_seconds{name="registration",controller="registration"',
  'rest_client_requests_total{code="200",method="GET",host="127.0.0.1:',
  'leader_election_master_status{name="operator.rollcall.dev"',
  'rollcall_registrations{phase="Registered"',
  'rollcall_expirations_total',
  'rollcall_expiry_lateness_seconds_bucket',
  'rollcall_grace_active',
  'rollcall_mass_lapse_total',
  'rollcall_events_dropped_total',
  'rollcall_events_pending',
  'process_resident_memory_bytes',
];

test('the metrics have the names and labels of controller-runtime and client-go', async (context) => {
  const world = await createWorld(context);
  const operator = await startOperator(world);
  await register(world, 'shop', { source: 'Manifest' });
  await untilPhase(world, 'shop', 'Registered');
  await until('it is counted', async () => (await operator.metric('rollcall_registrations{phase="Registered"')) === 1);
  const lines = (await operator.metrics()).split('\n');
  expect(NAMES.filter((name) => !lines.some((line) => line.startsWith(name)))).toEqual([]);
  expect(await operator.metric('leader_election_master_status')).toBe(1);
  expect(await operator.metric('controller_runtime_max_concurrent_reconciles{controller="registration"')).toBe(50);
});

test('very many registrations expire at once all the same, and that is reported', async (context) => {
  const world = await createWorld(context);
  const operator = await startOperator(world);
  const names = Array.from({ length: 150 }, (_, index) => `shop-${index}`);
  await Promise.all(names.map((name) => register(world, name)));
  await until('all are Expired', async () => (await operator.metric('rollcall_expirations_total')) === names.length);
  expect(await operator.metric('rollcall_mass_lapse_total')).toBe(1);
  await until('an Event reports it', async () => (await world.events('operator.rollcall.dev')).length === 1);
  expect(await world.events('operator.rollcall.dev')).toMatchObject([
    { type: 'Warning', reason: 'MassLapse', involvedObject: { kind: 'Lease' } },
  ]);
});
