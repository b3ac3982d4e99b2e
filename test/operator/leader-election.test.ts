import type { OwnerReference } from '@rollcall/crds/object-meta.ts';
import {
  createLeaderElection,
  defaultTimings,
  LeadershipLostError,
} from '@rollcall/operator/runtime/leader-election.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { type Lease, podKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { type ResourceClient, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { type ClusterParts, connectWith, readCluster, writeKubeconfig } from '../kube/fixtures.ts';
import { startTcpRelay } from '../kube/tcp-relay.ts';
import { createPod, createWorld, startOperator, until, type World } from './fixtures.ts';

const LEASE = 'leader';
const log = createLogger('election', process.env['TEST_LOG_LEVEL'] ?? 'silent');

let parts: ClusterParts;
beforeAll(async () => {
  parts = await readCluster(inject('kubeconfig'));
});

interface Candidate {
  readonly identity: string;
  /** Monotonic times at which it began and stopped to lead. */
  readonly began: number[];
  readonly ended: number[];
  readonly lost: Promise<unknown>;
  stop(): Promise<void>;
}

interface CandidateOptions {
  /** Where it reaches the API server; the API server's own by default. */
  readonly port?: number;
  readonly owner?: OwnerReference;
}

/** Lets a candidate compete for the Lease. */
async function candidate(world: World, identity: string, options: CandidateOptions = {}): Promise<Candidate> {
  const { port = parts.port, owner } = options;
  const cluster = { ...parts.cluster, server: `https://127.0.0.1:${port}` };
  const connection = await connectWith({ cluster, user: parts.user }, { requestTimeoutMs: 3000, maxSockets: 2 });
  const began: number[] = [];
  const ended: number[] = [];
  const election = createLeaderElection({
    connection,
    namespace: world.namespace,
    leaseName: LEASE,
    identity,
    owner,
    clock: systemClock,
    log,
    timings: defaultTimings,
    onChange: (isLeader) => void (isLeader ? began : ended).push(performance.now()),
  });
  const lost = election.failed.catch((error: unknown) => error);
  const stop = () => election.stop();
  world.onTestFinished(stop);
  await election.start();
  return { identity, began, ended, lost, stop };
}

const leads = ({ began, ended }: Candidate) => began.length > ended.length;
const holder = async (leases: ResourceClient<Lease>) => (await leases.get(LEASE)).spec?.holderIdentity;

async function podOwner(world: World, name: string): Promise<OwnerReference> {
  const { metadata } = await createPod(world, { name });
  return { apiVersion: 'v1', kind: 'Pod', name, uid: metadata.uid ?? '' };
}

describe('leader election', () => {
  test('one of several leads; when it stops, another takes over at once', async (context) => {
    const world = await createWorld(context);
    const candidates = await Promise.all(['a', 'b', 'c'].map((identity) => candidate(world, identity)));
    await until('one leads', async () => candidates.some(leads));
    await sleep(3000);
    const [first, ...others] = candidates.filter(leads);
    if (first === undefined) throw new Error('nobody leads');
    expect(others).toEqual([]);
    expect(await holder(world.leases)).toBe(first.identity);
    const stoppedAtMs = performance.now();
    await first.stop();
    expect(first.ended).toHaveLength(1);
    await until('another leads', async () => candidates.some(leads));
    // A Lease that nobody gives back lasts for ten seconds.
    expect(performance.now() - stoppedAtMs).toBeLessThan(9000);
    const second = candidates.find(leads);
    const { spec } = await world.leases.get(LEASE);
    expect(spec).toMatchObject({ holderIdentity: second?.identity, leaseDurationSeconds: 10 });
    expect(spec?.leaseTransitions).toBeGreaterThanOrEqual(1);
  });

  test('a leader that is cut off gives up before another takes over', async (context) => {
    const world = await createWorld(context);
    await using relay = await startTcpRelay(parts.port);
    const cutOff = await candidate(world, 'cut-off', { port: relay.port });
    await until('it leads', async () => leads(cutOff));
    const standby = await candidate(world, 'standby');
    await sleep(2500);
    relay.blackHole();
    const cutAtMs = performance.now();
    expect(await cutOff.lost).toBeInstanceOf(LeadershipLostError);
    await until('the standby leads', async () => leads(standby));
    const [lostAtMs = 0] = cutOff.ended;
    const [tookOverAtMs = 0] = standby.began;
    expect(tookOverAtMs).toBeGreaterThan(lostAtMs);
    expect(tookOverAtMs - cutAtMs).toBeLessThan(30_000);
    relay.heal();
  });

  test('a leader whose Lease somebody else holds stops at once', async (context) => {
    const world = await createWorld(context);
    const leader = await candidate(world, 'leader');
    await until('it leads', async () => leads(leader));
    await world.leases.patch(LEASE, { spec: { holderIdentity: 'usurper' } });
    const takenAtMs = performance.now();
    expect(await leader.lost).toBeInstanceOf(LeadershipLostError);
    expect(performance.now() - takenAtMs).toBeLessThan(9000);
    expect(await holder(world.leases)).toBe('usurper');
  });

  test('a leader whose Lease was deleted, or edited by the way, goes on leading', async (context) => {
    const world = await createWorld(context);
    const leader = await candidate(world, 'leader');
    await until('it leads', async () => leads(leader));
    await world.leases.patch(LEASE, { metadata: { annotations: { note: 'edited by hand' } } });
    await sleep(2500);
    expect(leads(leader)).toBe(true);
    await world.leases.delete(LEASE);
    await until('the Lease is there again', async () => (await world.leases.find(LEASE)) !== undefined);
    expect(await holder(world.leases)).toBe('leader');
    expect(leader.began).toHaveLength(1);
    expect(leader.ended).toHaveLength(0);
  });

  test('a Lease that was made anew goes with who made it: while everything is uninstalled nobody else would remove it', async (context) => {
    const world = await createWorld(context);
    const { metadata } = await world.leases.create({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'maker', namespace: world.namespace },
      spec: {},
    });
    const owner = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', name: 'maker', uid: metadata.uid ?? '' };
    const leader = await candidate(world, 'leader', { owner });
    await until('it leads', async () => leads(leader));
    await world.leases.delete(LEASE);
    await until('the Lease is there again', async () => (await world.leases.find(LEASE)) !== undefined);
    await leader.stop();
    await world.leases.delete('maker');
    await expect.poll(() => world.leases.find(LEASE), { timeout: 30_000 }).toBeUndefined();
  });

  test('that is its pod, whose name may be longer than a host name', async (context) => {
    const world = await createWorld(context);
    const { cluster, user } = parts;
    const { metadata } = await createPod(world, { name: `operator-${'x'.repeat(60)}` });
    const { name, uid = '' } = metadata;
    await startOperator(world, {
      access: { KUBECONFIG: await writeKubeconfig({ cluster, user, namespace: world.namespace }) },
      settings: { ROLLCALL_LEADER_LEASE: LEASE, ROLLCALL_POD_NAME: name, ROLLCALL_POD_UID: uid },
    });
    await until('it leads', async () => (await world.leases.find(LEASE)) !== undefined);
    const { ownerReferences } = (await world.leases.get(LEASE)).metadata;
    expect(ownerReferences).toEqual([{ apiVersion: 'v1', kind: 'Pod', name, uid }]);
  });

  test('one that is taken over goes with who took it, and not with the pod that led before', async (context) => {
    const world = await createWorld(context);
    const [before, after] = [await podOwner(world, 'before'), await podOwner(world, 'after')];
    const first = await candidate(world, 'first', { owner: before });
    await until('the first leads', async () => leads(first));
    const { metadata } = await world.leases.get(LEASE);
    expect(metadata.ownerReferences).toEqual([before]);
    await first.stop();
    const second = await candidate(world, 'second', { owner: after });
    await until('the second leads', async () => leads(second));
    expect((await world.leases.get(LEASE)).metadata).toMatchObject({ uid: metadata.uid, ownerReferences: [after] });
    await resourceClient(world.connection, podKind, world.namespace).delete(before.name);
    await sleep(3000);
    expect((await world.leases.get(LEASE)).metadata.uid).toBe(metadata.uid);
    await second.stop();

    const nobodys = await candidate(world, 'third');
    await until('the third leads', async () => leads(nobodys));
    expect((await world.leases.get(LEASE)).metadata.ownerReferences).toBeUndefined();
  });

  test('one that has no owner, as the chart makes it, gets none', async (context) => {
    const world = await createWorld(context);
    const { namespace } = world;
    const { metadata } = await world.leases.create({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: LEASE, namespace },
    });
    const leader = await candidate(world, 'leader', { owner: await podOwner(world, 'pod') });
    await until('it leads', async () => leads(leader));
    const current = (await world.leases.get(LEASE)).metadata;
    expect(current.uid).toBe(metadata.uid);
    expect(current.ownerReferences).toBeUndefined();
  });
});
