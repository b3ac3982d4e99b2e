import { labels } from '@rollcall/crds/kinds.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { describe, expect, test } from 'vitest';
import {
  createLease,
  createWorld,
  heartbeat,
  register,
  registerAlive,
  startOperator,
  TTL_SECONDS,
  until,
  untilPhase,
  type World,
} from './fixtures.ts';

const TTL_MS = TTL_SECONDS * 1000;
/** What a busy machine may take beyond the TTL (benches measure it on an idle one), and the test to notice. */
const LIMIT_MS = 6000;
const NOTICE_MS = 500;

describe.concurrent('expiry', () => {
  test('a service that falls silent is Expired one TTL after its last heartbeat, its Lease is gone, and an Event reports it', async (context) => {
    const world = await createWorld(context);
    const operator = await startOperator(world);
    await registerAlive(world, 'shop');
    const registered = await untilPhase(world, 'shop', 'Registered');
    expect(registered.status?.conditions).toMatchObject([
      { type: 'Ready', status: 'True', reason: 'Heartbeating', observedGeneration: 1 },
    ]);
    expect(registered.status?.registeredAt).toBe(registered.metadata.creationTimestamp);
    for (let beat = 0; beat < 3; beat += 1) {
      await sleep(2000);
      expect(await heartbeat(world, 'shop')).toBe(true);
    }
    const lastBeatAtMs = performance.now();
    const renewTime = (await world.leases.get('shop')).spec?.renewTime;
    const expired = await untilPhase(world, 'shop', 'Expired');
    expect(expired.seenAtMs - lastBeatAtMs).toBeGreaterThan(TTL_MS - NOTICE_MS);
    expect(expired.seenAtMs - lastBeatAtMs).toBeLessThan(TTL_MS + LIMIT_MS + NOTICE_MS);
    expect(expired.status?.conditions).toMatchObject([{ type: 'Ready', status: 'False', reason: 'HeartbeatLapsed' }]);
    expect(await heartbeat(world, 'shop')).toBe(false);
    await until('the Events are there', async () => (await world.events('shop')).length === 2);
    expect(await world.events('shop')).toMatchObject([
      { type: 'Normal', reason: 'Registered', count: 1 },
      { type: 'Warning', reason: 'Expired', message: `No heartbeat for 5 s; the last was at ${renewTime}` },
    ]);
    expect(await operator.metric('rollcall_expirations_total')).toBe(1);
    expect(await operator.metric('rollcall_registrations{phase="Expired"')).toBe(1);
  });

  test('a flushed heartbeat counts from the heartbeat, not from its write', async (context) => {
    const world = await createWorld(context);
    await startOperator(world);
    const [ttlMs, lateMs] = [15_000, 10_000];
    await registerAlive(world, 'shop', ttlMs / 1000);
    await sleep(lateMs + 500);
    const flushedAtMs = performance.now();
    await heartbeat(world, 'shop', lateMs);
    const { seenAtMs } = await untilPhase(world, 'shop', 'Expired');
    expect(seenAtMs - flushedAtMs).toBeGreaterThan(ttlMs - lateMs - NOTICE_MS);
    expect(seenAtMs - flushedAtMs).toBeLessThan(ttlMs - lateMs + LIMIT_MS + NOTICE_MS);
  });

  test('a registration without a Lease is Expired one TTL after it was seen, one without a TTL never', async (context) => {
    const world = await createWorld(context);
    await startOperator(world);
    await register(world, 'static', { source: 'Manifest' });
    await register(world, 'never-heard');
    const createdAtMs = performance.now();
    const { seenAtMs } = await untilPhase(world, 'never-heard', 'Expired');
    expect(seenAtMs - createdAtMs).toBeGreaterThan(TTL_MS - NOTICE_MS);
    expect(seenAtMs - createdAtMs).toBeLessThan(TTL_MS + LIMIT_MS + NOTICE_MS);
    await sleep(1000);
    const { status } = await world.registrations.get('static');
    expect(status).toMatchObject({ phase: 'Registered', conditions: [{ status: 'True', reason: 'Static' }] });
  });

  test('a registration that somebody declares is found by the name of its service', async (context) => {
    const world = await createWorld(context);
    await startOperator(world);
    await register(world, 'declared', { source: 'Manifest' });
    await until('it has the label', async () => {
      const { metadata } = await world.registrations.get('declared');
      return metadata.labels?.[labels.service] === 'declared';
    });
    expect((await world.registrations.get('declared')).status).toMatchObject({ phase: 'Registered' });
    // Somebody takes it off, as an older manifest does that is applied anew.
    await world.registrations.patch('declared', { metadata: { labels: null } });
    await until('it has the label again', async () => {
      const { metadata } = await world.registrations.get('declared');
      return metadata.labels?.[labels.service] === 'declared';
    });
  });

  test('an Expired registration is deleted after the retention', async (context) => {
    const world = await createWorld(context);
    await startOperator(world, { settings: { ROLLCALL_RETENTION_SECONDS: '3' } });
    await registerAlive(world, 'shop');
    const { seenAtMs } = await untilPhase(world, 'shop', 'Expired');
    await until('it is deleted', async () => (await world.registrations.find('shop')) === undefined);
    expect(performance.now() - seenAtMs).toBeGreaterThan(3000 - NOTICE_MS);
    expect(performance.now() - seenAtMs).toBeLessThan(3000 + LIMIT_MS + NOTICE_MS);
  });

  test('an operator that starts gives everything a full TTL, however old its last heartbeat', async (context) => {
    const world = await createWorld(context);
    const first = await startOperator(world);
    await registerAlive(world, 'shop');
    await untilPhase(world, 'shop', 'Registered');
    expect(await first.stop()).toBe(0);
    await sleep(TTL_MS + 1000);
    const second = await startOperator(world);
    const startedAtMs = performance.now();
    expect(await second.metric('rollcall_grace_active')).toBe(1);
    const { seenAtMs } = await untilPhase(world, 'shop', 'Expired');
    expect(seenAtMs - startedAtMs).toBeGreaterThan(TTL_MS - NOTICE_MS);
    expect(await second.metric('rollcall_grace_active')).toBe(0);
  });

  test('a spec that changes has its generation observed, without another Event', async (context) => {
    const world = await createWorld(context);
    await startOperator(world);
    await register(world, 'shop', { source: 'Manifest' });
    await untilPhase(world, 'shop', 'Registered');
    const { metadata } = await world.registrations.patch('shop', { spec: { url: 'http://moved.example' } });
    await until('the new generation is observed', async () => {
      const { status } = await world.registrations.get('shop');
      return status?.observedGeneration === metadata.generation;
    });
    await sleep(500);
    expect(await world.events('shop')).toHaveLength(1);
  });

  test('status that others write survives, and does not keep a registration from being Expired', async (context) => {
    const world = await createWorld(context);
    await startOperator(world);
    await registerAlive(world, 'shop');
    const writing = new AbortController();
    const reports = (async () => {
      for (let report = 0; !writing.signal.aborted; report += 1) {
        const health = { status: `report-${report}`, reportedAt: new Date().toISOString() };
        await world.registrations.apply(
          { metadata: { name: 'shop' }, status: { health } },
          { fieldManager: 'rollcall-registry', force: true, subresource: 'status' },
        );
      }
    })();
    const { status } = await untilPhase(world, 'shop', 'Expired');
    writing.abort();
    await reports;
    expect(status?.health?.status).toMatch(/report-/);
    const expiries = async () => (await world.events('shop')).filter(({ reason }) => reason === 'Expired').length;
    await until('an Event reports it', async () => (await expiries()) > 0);
    expect(await expiries()).toBe(1);
  });

  test('the wall clock of the operator may step by ten minutes, back and forth', async (context) => {
    const world = await createWorld(context);
    let offsetMs = 600_000;
    const steps = setInterval(() => {
      offsetMs = -offsetMs;
    }, 300);
    const clock: Clock = {
      now: () => new Date(Date.now() + offsetMs),
      monotonicMs: () => systemClock.monotonicMs(),
    };
    await startOperator(world, { clock, settings: { ROLLCALL_RETENTION_SECONDS: '4' } });
    await registerAlive(world, 'silent');
    const silentSinceMs = performance.now();
    await registerAlive(world, 'alive');
    const beating = new AbortController();
    const beats = keepAlive(world, 'alive', beating.signal);
    const { seenAtMs } = await untilPhase(world, 'silent', 'Expired');
    expect(seenAtMs - silentSinceMs).toBeGreaterThan(TTL_MS - NOTICE_MS);
    expect(seenAtMs - silentSinceMs).toBeLessThan(TTL_MS + LIMIT_MS + NOTICE_MS);
    await until('it is deleted', async () => (await world.registrations.find('silent')) === undefined);
    expect(performance.now() - seenAtMs).toBeGreaterThan(4000 - NOTICE_MS);
    expect((await world.registrations.get('alive')).status?.phase).toBe('Registered');
    beating.abort();
    expect(await beats).toBe('never refused');
    clearInterval(steps);
  });
});

test('no heartbeat is acknowledged for a registration that is being expired, however close it comes', async (context) => {
  const world = await createWorld(context);
  const operator = await startOperator(world);
  const names = Array.from({ length: 40 }, (_, index) => `racer-${index}`);
  const outcomes = await Promise.all(names.map((name) => race(world, name)));
  expect(outcomes.some(({ acknowledged }) => acknowledged > 0)).toBe(true);
  expect(outcomes.some(({ refused }) => refused)).toBe(true);
  for (const { expiredAtMs, lastSentAtMs } of outcomes) {
    // The operator saw the heartbeat after it was sent and stamps the expiry after its deadline, on
    // the same machine.
    expect(expiredAtMs - lastSentAtMs).toBeGreaterThanOrEqual(TTL_MS);
    expect(expiredAtMs - lastSentAtMs).toBeLessThan(TTL_MS + 2 * LIMIT_MS);
  }
  expect(await operator.metric('rollcall_expirations_total')).toBe(names.length);
});

/**
 * Registers and sends up to four heartbeats, each as close to the deadline as can be, until one is
 * refused.
 */
async function race(world: World, name: string) {
  const registration = await register(world, name);
  let lastSentAtMs = Date.now();
  await createLease(world, registration);
  let acknowledged = 0;
  let refused = false;
  while (acknowledged < 4 && !refused) {
    await sleep(lastSentAtMs + TTL_MS - Date.now() - 100 + Math.random() * 150);
    const sentAtMs = Date.now();
    refused = !(await heartbeat(world, name));
    if (refused) break;
    acknowledged += 1;
    lastSentAtMs = sentAtMs;
  }
  const { status } = await untilPhase(world, name, 'Expired');
  return { acknowledged, refused, expiredAtMs: Date.parse(status?.phaseSince ?? ''), lastSentAtMs };
}

/** Heartbeats every second until stopped. */
async function keepAlive(world: World, name: string, signal: AbortSignal): Promise<string> {
  while (await sleep(1000, signal)) {
    if (!(await heartbeat(world, name))) return 'refused';
  }
  return 'never refused';
}
