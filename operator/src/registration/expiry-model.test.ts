import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Lease } from '@rollcall/platform/kube/builtin-kinds.ts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createDeadlines } from './deadlines.ts';
import { planRegistration } from './plan.ts';

/*
 * One registration, one operator and a world that is unkind to both: random heartbeats (some flushed late), lost
 * connections, restarts, steps of the wall clock, a watch that is behind. The model knows when the service was last alive
 * and since when the operator has been able to see; from these alone it says when the registration has to be Expired.
 */

const TTL = 60_000;
const KEY = 'default/shop';
const LIMIT_MS = 1000;

type WorldEvent =
  | { readonly type: 'heartbeat'; readonly ageMs: number; readonly watchDelayMs: number }
  | { readonly type: 'disconnect' | 'reconnect' | 'restart' }
  | { readonly type: 'wall clock step'; readonly byMs: number };

const worldEvent: fc.Arbitrary<WorldEvent> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('heartbeat' as const),
      ageMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 15_000 })),
      watchDelayMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 500 })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom('disconnect', 'reconnect', 'restart') }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('wall clock step' as const),
      byMs: fc.integer({ min: -600_000, max: 600_000 }),
    }),
  },
);
const step = fc.record({ afterMs: fc.integer({ min: 1, max: 75_000 }), event: worldEvent });

interface Outcome {
  readonly expiredAtMs: number | undefined;
  /** By the model: when it was due. */
  readonly dueAtMs: number;
  readonly endMs: number;
}

function simulate(steps: readonly { readonly afterMs: number; readonly event: WorldEvent }[]): Outcome {
  let nowMs = 0;
  let wallOffsetMs = 0;
  // The truth.
  let version = 1;
  let ageMs = 0;
  let lastAliveMs = 0;
  // The operator.
  let deadlines = createDeadlines();
  let seenVersion = 0;
  let connectedSinceMs: number | undefined;
  let observeAtMs = Number.POSITIVE_INFINITY;
  let expiredAtMs: number | undefined;
  const inFlight: { readonly atMs: number; readonly version: number; readonly ageMs: number }[] = [];

  const heartbeat = () => ({ ownerUid: 'uid-1', ageMs, ttlMs: TTL });
  function seeLease(): void {
    if (seenVersion === version) return;
    seenVersion = version;
    deadlines.heartbeatSeen(KEY, heartbeat(), nowMs);
  }
  function connect(): void {
    inFlight.length = 0;
    deadlines.registrationSeen(KEY, { uid: 'uid-1', ttlMs: TTL }, nowMs);
    seeLease();
    connectedSinceMs = nowMs;
  }
  function observe(): void {
    observeAtMs = Number.POSITIVE_INFINITY;
    const decision = planRegistration(snapshot());
    const fence = decision.changes.find((change) => change.action === 'delete');
    if (fence !== undefined && seenVersion === version) {
      expiredAtMs = nowMs;
    } else if (fence !== undefined) {
      // Conflict: a heartbeat won. Observe what it left, and decide again.
      seeLease();
      observeAtMs = nowMs;
    } else if (decision.requeueAfterMs !== undefined) {
      observeAtMs = nowMs + decision.requeueAfterMs;
    }
  }
  function snapshot() {
    return {
      registration,
      liveness: {
        by: 'heartbeats' as const,
        ttlMs: TTL,
        deadlineMs: deadlines.deadlineMs(KEY, connectedSinceMs),
        lease,
        lastHeartbeatAt: undefined,
      },
      check: undefined,
      deleteAtMs: undefined,
      nowMs,
      now: new Date(1_800_000_000_000 + nowMs + wallOffsetMs),
    };
  }
  function happen(event: WorldEvent): void {
    switch (event.type) {
      case 'heartbeat':
        // A registry never replaces a newer heartbeat: it writes the Lease in the version that it
        // has seen.
        if (nowMs - event.ageMs < lastAliveMs) break;
        lastAliveMs = nowMs - event.ageMs;
        version += 1;
        ageMs = event.ageMs;
        inFlight.push({ atMs: nowMs + event.watchDelayMs, version, ageMs });
        inFlight.sort((a, b) => a.version - b.version);
        break;
      case 'disconnect':
        connectedSinceMs = undefined;
        break;
      case 'reconnect':
        if (connectedSinceMs === undefined) connect();
        break;
      case 'restart':
        deadlines = createDeadlines();
        seenVersion = 0;
        connect();
        observe();
        break;
      case 'wall clock step':
        wallOffsetMs += event.byMs;
        break;
    }
  }
  /** Runs the operator until then. */
  function passUntil(untilMs: number): void {
    while (expiredAtMs === undefined) {
      const deliveredAtMs =
        connectedSinceMs === undefined ? Number.POSITIVE_INFINITY : (inFlight[0]?.atMs ?? Number.POSITIVE_INFINITY);
      const nextMs = Math.min(deliveredAtMs, observeAtMs);
      if (nextMs > untilMs) break;
      nowMs = Math.max(nowMs, nextMs);
      if (deliveredAtMs <= observeAtMs) {
        const event = inFlight.shift();
        if (event !== undefined && event.version > seenVersion) {
          seenVersion = event.version;
          deadlines.heartbeatSeen(KEY, { ownerUid: 'uid-1', ageMs: event.ageMs, ttlMs: TTL }, nowMs);
        }
      } else {
        observe();
      }
    }
    if (expiredAtMs === undefined) nowMs = untilMs;
  }

  connect();
  observe();
  for (const { afterMs, event } of steps) {
    passUntil(nowMs + afterMs);
    if (expiredAtMs !== undefined) break;
    happen(event);
  }
  happen({ type: 'reconnect' });
  const dueAtMs = Math.max(lastAliveMs, connectedSinceMs ?? Number.POSITIVE_INFINITY) + TTL;
  passUntil(nowMs + 3 * TTL);
  return { expiredAtMs, dueAtMs, endMs: nowMs };
}

const registration: ServiceRegistration = {
  apiVersion: 'rollcall.dev/v1alpha1',
  kind: 'ServiceRegistration',
  metadata: { name: 'shop', namespace: 'default', uid: 'uid-1', resourceVersion: '1', generation: 1 },
  spec: { serviceName: 'shop', url: 'http://shop', capabilities: [], source: 'API', ttlSeconds: 60 },
};
const lease: Lease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'shop', namespace: 'default', uid: 'uid-lease' },
};

test('never expires before a TTL without heartbeat and in connectivity, and always within a second after', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
      const { expiredAtMs, dueAtMs } = simulate(steps);
      expect(expiredAtMs).toBeDefined();
      expect(expiredAtMs).toBeGreaterThanOrEqual(dueAtMs);
      expect(expiredAtMs).toBeLessThanOrEqual(dueAtMs + LIMIT_MS);
    }),
    { numRuns: 2000 },
  );
});

test('a service that keeps to 45 s lives as long as it does, whatever else happens', () => {
  const disturbance = fc.record({
    afterMs: fc.integer({ min: 1, max: 45_000 }),
    event: worldEvent.filter((event) => event.type !== 'heartbeat'),
  });
  fc.assert(
    fc.property(fc.array(disturbance, { maxLength: 25 }), (disturbances) => {
      const steps = disturbances.flatMap(({ afterMs, event }) => [
        { afterMs, event },
        { afterMs: 45_000 - afterMs, event: { type: 'heartbeat', ageMs: 0, watchDelayMs: 500 } as const },
      ]);
      const { expiredAtMs = 0 } = simulate(steps);
      expect(expiredAtMs).toBeGreaterThanOrEqual(steps.length * 22_500 + TTL);
    }),
    { numRuns: 500 },
  );
});
