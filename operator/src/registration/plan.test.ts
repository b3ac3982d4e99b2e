import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Lease } from '@rollcall/platform/kube/builtin-kinds.ts';
import { describe, expect, test } from 'vitest';
import type { Change } from '../runtime/decision.ts';
import { type Liveness, planRegistration, type RegistrationSnapshot } from './plan.ts';

const NOW = new Date('2026-11-20T12:00:00.000Z');
const NOW_MS = 1_000_000;
const TTL = 60_000;

type Overrides = {
  readonly spec?: Partial<ServiceRegistration['spec']>;
  readonly status?: ServiceRegistration['status'];
  readonly metadata?: Partial<ServiceRegistration['metadata']>;
};

function registration({ spec, status, metadata }: Overrides = {}): ServiceRegistration {
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ServiceRegistration',
    metadata: {
      name: 'shop',
      namespace: 'default',
      uid: 'uid-1',
      resourceVersion: '7',
      generation: 1,
      creationTimestamp: '2026-11-20T11:00:00Z',
      labels: { 'rollcall.dev/service': 'shop' },
      ...metadata,
    },
    spec: { serviceName: 'shop', url: 'http://shop', capabilities: ['rest'], source: 'API', ttlSeconds: 60, ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

const lease: Lease = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'shop', namespace: 'default', uid: 'uid-lease', resourceVersion: '9' },
  spec: { leaseDurationSeconds: 60, renewTime: '2026-11-20T11:58:59.000000Z' },
};

function heartbeats(deadlineMs: number | undefined, own: Lease | undefined = lease): Liveness {
  return { by: 'heartbeats', ttlMs: TTL, deadlineMs, lease: own, lastHeartbeatAt: own?.spec?.renewTime };
}

function byEndpoint(ready: boolean | undefined, deadlineMs?: number): Liveness {
  return { by: 'endpoints', ttlMs: TTL, deadlineMs, ready };
}

function plan(snapshot: Partial<RegistrationSnapshot>) {
  return planRegistration({
    registration: registration(),
    liveness: heartbeats(NOW_MS + 10_000),
    check: undefined,
    deleteAtMs: undefined,
    nowMs: NOW_MS,
    now: NOW,
    ...snapshot,
  });
}

/** The status that a registration has after a first observation. */
function settledStatus(liveness: Liveness, of = registration()): NonNullable<ServiceRegistration['status']> {
  const [change] = plan({ registration: of, liveness }).changes;
  if (change?.action !== 'status') throw new Error('no status');
  return change.status;
}

const actions = (changes: readonly Change[]) =>
  changes.map((change) =>
    change.action === 'event' ? `event ${change.reason}` : `${change.action} ${change.kind.kind}`,
  );

describe('the registration of an endpoint', () => {
  const check = { status: 'Failing', since: '2026-11-20T11:30:00.000Z', message: 'The endpoint is not ready' } as const;
  const failing = (instanceId?: string) => {
    const spec = instanceId === undefined ? {} : { instanceId };
    const settled = settledStatus(byEndpoint(false), registration({ spec }));
    return registration({ spec, status: { ...settled, check } });
  };

  test.each([
    { sentence: 'fails its check since it is not ready', ready: false, expected: [] },
    { sentence: 'keeps what it has while nobody can tell', ready: undefined, expected: [] },
    {
      sentence: 'passes it when it is ready',
      ready: true,
      expected: [
        { status: { check: { status: 'Passing', since: NOW.toISOString(), message: 'The endpoint is ready' } } },
        { action: 'event', reason: 'Healthy' },
      ],
    },
  ])('$sentence', ({ ready, expected }) => {
    expect(plan({ registration: failing('a'), liveness: byEndpoint(ready) }).changes).toMatchObject(expected);
  });

  test('alone has one: that of a whole Service is what somebody declares', () => {
    const [change] = plan({ registration: failing(), liveness: byEndpoint(undefined), check }).changes;
    expect(change).toMatchObject({ action: 'status', status: { check } });
    expect(settledStatus(byEndpoint(undefined))).not.toHaveProperty('check');
  });
});

/** What is changed of a registration whose status is settled. */
function changesOf(serviceName: string, labels: Record<string, string> = {}): readonly Change[] {
  const of = (status?: ServiceRegistration['status']) =>
    registration({ spec: { serviceName }, metadata: { labels }, status });
  return plan({ registration: of(settledStatus(heartbeats(NOW_MS + 10_000), of())) }).changes;
}

describe('the label by which a registration is found', () => {
  test('is added where it is missing, once the status is written', () => {
    const patch = { metadata: { labels: { 'rollcall.dev/service': 'shop' } } };
    expect(changesOf('shop')).toMatchObject([{ action: 'patch', object: { metadata: { uid: 'uid-1' } }, patch }]);
    expect(actions(plan({ registration: registration({ metadata: { labels: {} } }) }).changes)).toEqual([
      'status ServiceRegistration',
      'event Registered',
    ]);
  });

  test.each([
    ['it is there', 'shop', { 'rollcall.dev/service': 'shop' }],
    ['somebody has set another', 'shop', { 'rollcall.dev/service': 'other' }],
    ['the name can be no label', 'größe', {}],
  ])('is left alone where %s', (_what, serviceName, labels) => {
    expect(changesOf(serviceName, labels)).toEqual([]);
  });
});

describe('a registration that is alive', () => {
  test('gets its first status and an Event, and is observed again at its deadline', () => {
    const { changes, requeueAfterMs } = plan({});
    expect(actions(changes)).toEqual(['status ServiceRegistration', 'event Registered']);
    expect(changes[0]).toMatchObject({
      object: { metadata: { uid: 'uid-1', resourceVersion: '7' } },
      status: {
        phase: 'Registered',
        phaseSince: '2026-11-20T11:00:00Z',
        registeredAt: '2026-11-20T11:00:00Z',
        observedGeneration: 1,
        conditions: [
          {
            type: 'Ready',
            status: 'True',
            reason: 'Heartbeating',
            observedGeneration: 1,
            lastTransitionTime: '2026-11-20T11:00:00Z',
          },
        ],
      },
    });
    expect(requeueAfterMs).toBe(10_000);
  });

  test.each<{ sentence: string; liveness: Liveness; reason: string; requeueAfterMs: number | undefined }>([
    { sentence: 'by itself', liveness: { by: 'itself' }, reason: 'Static', requeueAfterMs: undefined },
    {
      sentence: 'by ready endpoints',
      liveness: byEndpoint(undefined),
      reason: 'EndpointsReady',
      requeueAfterMs: undefined,
    },
    {
      sentence: 'by endpoints that were ready a moment ago',
      liveness: byEndpoint(undefined, NOW_MS + 1),
      reason: 'EndpointsReady',
      requeueAfterMs: 1,
    },
    {
      sentence: 'as far as a blind operator can know',
      liveness: heartbeats(undefined),
      reason: 'Heartbeating',
      requeueAfterMs: TTL,
    },
  ])('$sentence has the reason $reason', ({ liveness, reason, requeueAfterMs }) => {
    const decision = plan({ liveness });
    expect(decision.changes[0]).toMatchObject({ status: { conditions: [{ status: 'True', reason }] } });
    expect(decision.requeueAfterMs).toBe(requeueAfterMs);
  });

  test('is not written again when nothing changed', () => {
    const liveness = heartbeats(NOW_MS + 10_000);
    const settled = registration({ status: settledStatus(liveness) });
    expect(plan({ registration: settled, liveness }).changes).toEqual([]);
  });

  test('has what other writers put into its status left alone', () => {
    const liveness = heartbeats(NOW_MS + 10_000);
    const status = {
      ...settledStatus(liveness),
      currentVersion: '1.2.3',
      lifecycle: { event: 'started', at: '2026-11-20T11:30:00Z' },
    };
    expect(plan({ registration: registration({ status }), liveness }).changes).toEqual([]);
  });

  test('gets its observed generation raised, without an Event, when its spec changed', () => {
    const liveness = heartbeats(NOW_MS + 10_000);
    const status = settledStatus(liveness);
    const changed = registration({ status, metadata: { generation: 2 } });
    const { changes } = plan({ registration: changed, liveness });
    expect(actions(changes)).toEqual(['status ServiceRegistration']);
    expect(changes[0]).toMatchObject({
      status: { observedGeneration: 2, phaseSince: status.phaseSince, conditions: [{ observedGeneration: 2 }] },
    });
  });
});

describe('a registration whose time is up', () => {
  const status = settledStatus(heartbeats(NOW_MS + 10_000));
  const known = registration({ status, metadata: { resourceVersion: '8' } });

  test('loses its Lease first, and is then Expired', () => {
    const { changes, requeueAfterMs } = plan({ registration: known, liveness: heartbeats(NOW_MS) });
    expect(actions(changes)).toEqual(['delete Lease', 'status ServiceRegistration', 'event Expired']);
    expect(changes[0]).toMatchObject({ object: { metadata: { uid: 'uid-lease', resourceVersion: '9' } } });
    expect(changes[1]).toMatchObject({
      object: { metadata: { uid: 'uid-1', resourceVersion: '8' } },
      status: {
        phase: 'Expired',
        phaseSince: NOW.toISOString(),
        registeredAt: '2026-11-20T11:00:00Z',
        conditions: [
          { status: 'False', reason: 'HeartbeatLapsed', lastTransitionTime: NOW.toISOString(), observedGeneration: 1 },
        ],
      },
    });
    expect(changes[2]).toMatchObject({
      type: 'Warning',
      message: 'No heartbeat for 60 s; the last was at 2026-11-20T11:58:59.000000Z',
    });
    expect(requeueAfterMs).toBeUndefined();
  });

  test('is Expired without more ado where it has no Lease', () => {
    const liveness: Liveness = {
      ...heartbeats(NOW_MS - 1),
      by: 'heartbeats',
      lease: undefined,
      lastHeartbeatAt: undefined,
      ttlMs: TTL,
      deadlineMs: NOW_MS - 1,
    };
    const { changes } = plan({ registration: known, liveness });
    expect(actions(changes)).toEqual(['status ServiceRegistration', 'event Expired']);
    expect(changes[1]).toMatchObject({ message: 'No heartbeat for 60 s; none is known' });
  });

  test('is Expired when it was never observed before', () => {
    const { changes } = plan({ liveness: heartbeats(NOW_MS) });
    expect(actions(changes)).toEqual(['delete Lease', 'status ServiceRegistration', 'event Expired']);
  });

  test('of an endpoint is Expired like any, and says what is not ready', () => {
    const of = registration({ spec: { instanceId: 'a' } });
    const { changes } = plan({ registration: of, liveness: byEndpoint(false, NOW_MS) });
    const conditions = [{ message: 'The endpoint was not ready for 60 s' }];
    expect(changes[0]).toMatchObject({ status: { phase: 'Expired', conditions, check: { status: 'Failing' } } });
  });

  test('is Expired for want of ready endpoints', () => {
    const { changes } = plan({ registration: known, liveness: byEndpoint(undefined, NOW_MS) });
    expect(actions(changes)).toEqual(['status ServiceRegistration', 'event Expired']);
    expect(changes[0]).toMatchObject({ status: { conditions: [{ status: 'False', reason: 'EndpointsNotReady' }] } });
  });

  test.each([
    { sentence: 'a millisecond too early', liveness: heartbeats(NOW_MS + 1) },
    { sentence: 'while blind', liveness: heartbeats(undefined) },
  ])('is left alone $sentence', ({ liveness }) => {
    expect(plan({ registration: known, liveness }).changes).toEqual([]);
  });

  test('is left alone when it is being deleted anyway', () => {
    const leaving = registration({ status, metadata: { deletionTimestamp: '2026-11-20T11:59:00Z' } });
    expect(plan({ registration: leaving, liveness: heartbeats(NOW_MS) })).toEqual({ changes: [] });
  });
});

describe('an Expired registration', () => {
  const expired = registration({ status: { phase: 'Expired', phaseSince: '2026-11-20T11:30:00Z' } });

  test.each([
    {
      sentence: 'is deleted when it was kept for long enough',
      deleteAtMs: NOW_MS,
      expected: ['delete ServiceRegistration'],
    },
    { sentence: 'is kept until then', deleteAtMs: NOW_MS + 500, expected: [], requeueAfterMs: 500 },
    { sentence: 'is kept for good when it has no such time', deleteAtMs: undefined, expected: [] },
  ])('$sentence', ({ deleteAtMs, expected, requeueAfterMs }) => {
    const decision = plan({ registration: expired, liveness: heartbeats(NOW_MS), deleteAtMs });
    expect(actions(decision.changes)).toEqual(expected);
    expect(decision.requeueAfterMs).toBe(requeueAfterMs);
  });

  test('stays so whatever its heartbeats', () => {
    const decision = plan({ registration: expired, liveness: heartbeats(NOW_MS + 10_000), deleteAtMs: NOW_MS + 500 });
    expect(decision.changes).toEqual([]);
  });
});

function written({ changes }: ReturnType<typeof plan>): object | undefined {
  return changes.flatMap((change) => (change.action === 'status' ? [change.status] : []))[0];
}

describe('the health of a registration', () => {
  const liveness: Liveness = { by: 'itself' };
  const since = '2026-11-20T11:30:00Z';
  const failing = { status: 'Failing', since, message: 'it answered 503' } as const;
  const passing = { status: 'Passing', since, message: 'it answered 200' } as const;
  const said = (status: string) => ({ health: { status, reportedAt: since } });
  const settled = (status: NonNullable<ServiceRegistration['status']>, check?: RegistrationSnapshot['check']) =>
    written(plan({ liveness, check, registration: registration({ status }) }));

  /** The Events of a change from one to the other. */
  function reported(before: object, [after, check]: Parameters<typeof settled>): string[] {
    const status = { ...settled(before), ...after };
    const { changes } = plan({ liveness, check, registration: registration({ status }) });
    return changes.flatMap((change) =>
      change.action === 'event' ? [`${change.type} ${change.reason}: ${change.message}`] : [],
    );
  }

  test('is a condition once something is known of it, and its check is shown', () => {
    expect(settled({})).toMatchObject({ conditions: [{ type: 'Ready' }] });
    expect(settled({}, passing)).toMatchObject({
      check: passing,
      conditions: [{ type: 'Ready' }, { type: 'Healthy', status: 'True', lastTransitionTime: NOW.toISOString() }],
    });
  });

  test.each<[string, object, Parameters<typeof settled>, string[]]>([
    ['a report', said('ok'), [said('Draining')], ["Warning Unhealthy: It reports 'Draining'"]],
    ['the first report', {}, [said('degraded')], ["Warning Unhealthy: It reports 'degraded'"]],
    ['another word that is as good', said('ok'), [said('up')], []],
    ['a check that fails', said('ok'), [said('ok'), failing], ['Warning Unhealthy: Its check fails: it answered 503']],
    ['a check that passes', {}, [{}, passing], []],
    ['a check that fails, too', said('draining'), [said('draining'), failing], []],
    [
      'the end of all that was against it',
      said('unhealthy'),
      [said('ok'), passing],
      ['Normal Healthy: Neither its report nor a check says otherwise'],
    ],
  ])('changes by %s', (...[, before, after, events]) => {
    expect(reported(before, after)).toEqual(events);
  });

  test('is dropped, with what the check said, when the registration expires', () => {
    const status = { ...settledStatus(heartbeats(NOW_MS + 1)), ...settled(said('draining'), failing) };
    const expired = plan({ registration: registration({ status }), liveness: heartbeats(NOW_MS), check: failing });
    expect(written(expired)).toMatchObject({ phase: 'Expired', conditions: [{ type: 'Ready' }] });
    expect(written(expired)).not.toHaveProperty('check');
  });
});
