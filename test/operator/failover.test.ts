import { join } from 'node:path';
import { freePorts } from '@rollcall/local/ports.ts';
import { type ManagedProcess, startProcess } from '@rollcall/local/processes.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { beforeAll, expect, inject, test } from 'vitest';
import { type ClusterParts, readCluster, writeKubeconfig } from '../kube/fixtures.ts';
import { startTcpRelay } from '../kube/tcp-relay.ts';
import { createWorld, heartbeat, registerAlive, until, untilPhase, type World } from './fixtures.ts';

const MAIN = join(import.meta.dirname, '../../operator/src/main.ts');
const LEASE = 'operator.rollcall.dev';

let parts: ClusterParts;
beforeAll(async () => {
  parts = await readCluster(inject('kubeconfig'));
});

interface OperatorProcess extends ManagedProcess {
  readonly metric: (prefix: string) => Promise<number>;
}

/** Runs the operator as a process of its own and waits until it is ready. */
async function startOperatorProcess(world: World, access = inject('podEnvironment')): Promise<OperatorProcess> {
  const [port = 0] = await freePorts(1);
  const started = await startProcess({
    name: `operator-${port}`,
    command: process.execPath,
    args: [MAIN],
    logFile: join(inject('temporaryDirectory'), `operator-${port}.log`),
    env: {
      PATH: process.env['PATH'],
      ...access,
      ROLLCALL_NAMESPACE: world.namespace,
      ROLLCALL_IMPORT: 'false',
      ROLLCALL_HOST: '127.0.0.1',
      ROLLCALL_ADMIN_PORT: String(port),
    },
  });
  world.onTestFinished(() => started.stop());
  const get = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/${path}`);
    return { ok: response.ok, text: await response.text() };
  };
  await until('the operator is ready', async () => (await get('readyz').catch(() => ({ ok: false }))).ok);
  const metric = async (prefix: string) => {
    const line = (await get('metrics')).text.split('\n').find((candidate) => candidate.startsWith(prefix));
    return Number(line?.split(' ').at(-1) ?? 0);
  };
  return { ...started, metric };
}

async function leader(world: World): Promise<string> {
  return (await world.leases.find(LEASE))?.spec?.holderIdentity ?? '';
}

test('a killed leader is replaced by a standby that has been observing all along', async (context) => {
  const world = await createWorld(context);
  const first = await startOperatorProcess(world);
  await until('it leads', async () => (await leader(world)) !== '');
  const firstIdentity = await leader(world);
  const second = await startOperatorProcess(world);
  const ttlMs = 15_000;
  await registerAlive(world, 'shop', ttlMs / 1000);
  await untilPhase(world, 'shop', 'Registered');
  await sleep(2000);
  expect(await second.metric('leader_election_master_status')).toBe(0);

  expect(await heartbeat(world, 'shop')).toBe(true);
  const killedAtMs = performance.now();
  await first.stop({ signal: 'SIGKILL' });
  await until('the standby leads', async () => ![firstIdentity, ''].includes(await leader(world)));
  const tookOverAfterMs = performance.now() - killedAtMs;
  expect(tookOverAfterMs).toBeLessThan(ttlMs + 5000);
  // It gives no grace of its own: the deadline is that of the last heartbeat.
  const { seenAtMs } = await untilPhase(world, 'shop', 'Expired');
  expect(seenAtMs - killedAtMs).toBeGreaterThan(ttlMs - 500);
  // A grace of its own would begin when it takes over, ten seconds after the kill.
  expect(seenAtMs - killedAtMs).toBeLessThan(ttlMs + 8000);
  expect(await second.metric('leader_election_master_status')).toBe(1);
}, 90_000);

test('an operator that stops hands over at once', async (context) => {
  const world = await createWorld(context);
  const first = await startOperatorProcess(world);
  await until('it leads', async () => (await leader(world)) !== '');
  const firstIdentity = await leader(world);
  await startOperatorProcess(world);
  await first.stop();
  expect(await first.exited).toEqual({ code: 0, signal: null });
  const stoppedAtMs = performance.now();
  await until('the other leads', async () => ![firstIdentity, ''].includes(await leader(world)));
  // A Lease that nobody gives back lasts for ten.
  expect(performance.now() - stoppedAtMs).toBeLessThan(9000);
});

test('an operator that is cut off exits, and the next one expires no service that lived on meanwhile', async (context) => {
  const world = await createWorld(context);
  await using relay = await startTcpRelay(parts.port);
  const cluster = { ...parts.cluster, server: `https://127.0.0.1:${relay.port}` };
  const kubeconfig = await writeKubeconfig({ cluster, user: parts.user });
  const first = await startOperatorProcess(world, { KUBECONFIG: kubeconfig });
  await Promise.all(['alive', 'dead'].map((name) => registerAlive(world, name)));
  await untilPhase(world, 'alive', 'Registered');
  const beating = new AbortController();
  const beats = (async () => {
    while (await sleep(1000, beating.signal)) if (!(await heartbeat(world, 'alive'))) return 'refused';
    return 'never refused';
  })();

  relay.blackHole();
  expect(await first.exited).toEqual({ code: 1, signal: null });
  await sleep(3000);
  relay.heal();
  const second = await startOperatorProcess(world, { KUBECONFIG: kubeconfig });
  const startedAtMs = performance.now();
  const { seenAtMs } = await untilPhase(world, 'dead', 'Expired');
  // Its grace, once the Lease of the lost leader has run out.
  expect(seenAtMs - startedAtMs).toBeGreaterThan(4500);
  expect((await world.registrations.get('alive')).status?.phase).toBe('Registered');
  expect(await second.metric('rollcall_expirations_total')).toBe(1);
  beating.abort();
  expect(await beats).toBe('never refused');
}, 90_000);
