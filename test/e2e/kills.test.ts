import { absorbWindowMs } from '@rollcall/registry/registrations/domain/heartbeats.ts';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Deployment, startDeployment } from '../support/deployment.ts';
import { openEventStream } from '../support/event-stream.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { startAgain } from '../support/postgres.ts';
import type { Supervised } from '../support/supervised.ts';

const FAILOVER_LIMIT_MS = 25_000;
const CHAOS_MS = 30_000;
const TTL_MS = 20_000;
const LEADER_LEASE = 'operator.rollcall.dev';

let deployment: Deployment;
let fleet: Fleet;

beforeAll(async () => {
  deployment = await startDeployment({
    registries: 2,
    operators: 2,
    registrySettings: { ROLLCALL_TTL_SECONDS: String(TTL_MS / 1000) },
  });
  fleet = await startFleet({
    size: 100,
    perName: 2,
    prefix: 'live',
    urls: deployment.registries.map(({ current }) => current.url),
    // Several may be lost, one after another, on a busy machine.
    heartbeatMs: TTL_MS / 5,
    promisedMs: TTL_MS - absorbWindowMs(TTL_MS / 1000),
  });
});

afterAll(async () => {
  await fleet?.[Symbol.asyncDispose]();
  await deployment?.[Symbol.asyncDispose]();
});

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function isLeader({ current }: Supervised): Promise<boolean> {
  const metrics = await fetch(`${current.adminUrl}/metrics`).then(
    (response) => response.text(),
    () => '',
  );
  return /^leader_election_master_status\{.*\} 1$/m.test(metrics);
}

async function leader(): Promise<Supervised | undefined> {
  for (const operator of deployment.operators) if (await isLeader(operator)) return operator;
  return undefined;
}

/** The identity that holds the leader Lease. */
function holder(): Promise<string> {
  return deployment.kubectl(['get', 'lease', LEADER_LEASE, '-o', 'jsonpath={.spec.holderIdentity}']);
}

/** What was asked for, and what was answered. */
interface Ledger {
  /** Registered or removed, by the last answer; undefined when the last call was cut off. */
  readonly services: Map<string, boolean | undefined>;
  /** Ids of the jobs that were acknowledged. */
  readonly jobs: Set<string>;
}

async function attempt(registry: Supervised, path: string, body: object): Promise<Record<string, unknown> | undefined> {
  try {
    const answer = await registry.current.call('POST', path, body);
    return answer.status === 200 ? answer.body : undefined;
  } catch {
    return undefined;
  }
}

async function load(caller: number, ledger: Ledger, until: () => boolean): Promise<void> {
  for (let index = 0; !until(); index += 1) {
    const registry = deployment.registries[(caller + index) % 2];
    if (registry === undefined) throw new Error('no registry');
    const name = `load-${caller}-${index % 20}`;
    const registered = await attempt(registry, '/services/register', { service_name: name, service_url: 'http://a' });
    ledger.services.set(name, registered === undefined ? undefined : true);
    if (index % 2 === 0) {
      const removed = await registry.current.call('DELETE', `/services/${name}`).then(
        ({ status }) => (status === 200 || status === 404 ? false : undefined),
        () => undefined,
      );
      ledger.services.set(name, removed);
    }
    const deploy = {
      service_name: `app-${caller}`,
      version: `1.0.${index}`,
      artifact_url: `registry.local/app:${index}`,
    };
    const job = await attempt(registry, '/webhooks/deploy', deploy);
    if (typeof job?.['job_id'] === 'string') ledger.jobs.add(job['job_id']);
    await wait(150);
  }
}

async function recorded(): Promise<string[]> {
  const client = new Client({ connectionString: deployment.databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ job: string }>('SELECT job_uid::text AS job FROM registry.history');
    return rows.map(({ job }) => job);
  } finally {
    await client.end();
  }
}

test('the leader is killed: the standby takes over and expires what is due, nothing else', async () => {
  const [registry] = deployment.registries;
  if (registry === undefined) throw new Error('no registry');
  await using stream = await openEventStream(`${registry.current.url}/api/v1/services/watch`);
  await stream.until('synced');
  await registry.current.call('POST', '/services/register', { service_name: 'doomed', service_url: 'http://a' });
  const lastBeat = performance.now();
  await expect.poll(leader, { timeout: 20_000 }).toBeDefined();
  await wait(TTL_MS - 5000 - (performance.now() - lastBeat));
  const old = await leader();
  const before = await holder();
  const killedAt = performance.now();
  await old?.current.kill();
  await expect.poll(holder, { timeout: FAILOVER_LIMIT_MS + 5000, interval: 200 }).not.toBe(before);
  expect(performance.now() - killedAt).toBeLessThan(FAILOVER_LIMIT_MS);
  const expired = (await stream.until('expired', 30_000)).at(-1);
  expect(expired?.data['service_name']).toBe('doomed');
  const lateMs = performance.now() - lastBeat - TTL_MS;
  expect(lateMs).toBeGreaterThan(-100);
  expect(lateMs).toBeLessThan(FAILOVER_LIMIT_MS);
});

test('kill -9 of leader, registries and PostgreSQL under load: what was acknowledged is there, once', async () => {
  const ledger: Ledger = { services: new Map(), jobs: new Set() };
  const startedAt = performance.now();
  let over = false;
  const until = () => over;
  const callers = Array.from({ length: 4 }, (_, caller) => load(caller, ledger, until));
  for (let round = 0; performance.now() - startedAt < CHAOS_MS; round += 1) {
    await wait(2000 + Math.random() * 4000);
    if (round % 3 === 0) await deployment.registries[round % 2]?.current.kill();
    else if (round % 3 === 1) await (await leader())?.current.kill();
    else {
      await deployment.postgres.kill();
      await wait(1500);
      await startAgain(deployment.postgres);
    }
  }
  over = true;
  await Promise.all(callers);

  const listed = await deployment.kubectl([
    'get',
    'sreg',
    '-o',
    'jsonpath={range .items[*]}{.spec.serviceName}{"\\n"}{end}',
  ]);
  const present = new Set(listed.trim().split('\n'));
  const wrong = [...ledger.services].filter(([name, there]) => there !== undefined && present.has(name) !== there);
  expect(ledger.services.size).toBeGreaterThan(50);
  expect(wrong).toEqual([]);

  const jobs = JSON.parse(await deployment.kubectl(['get', 'deliveryjobs', '-o', 'json'])) as {
    items: { metadata: { name: string; uid: string } }[];
  };
  const names = jobs.items.map(({ metadata }) => metadata.name);
  expect(ledger.jobs.size).toBeGreaterThan(50);
  expect([...ledger.jobs].filter((id) => !names.includes(id))).toEqual([]);
  // There is no Deployment for any of them: an operator ends them, a registry records them.
  const uids = jobs.items.map(({ metadata }) => metadata.uid).sort();
  // Jobs of one service end one after the other, and there are many.
  await expect.poll(async () => (await recorded()).sort(), { timeout: 240_000, interval: 1000 }).toEqual(uids);
  const held = async () =>
    deployment.kubectl(['get', 'deliveryjobs', '-o', 'jsonpath={.items[*].metadata.finalizers}']);
  await expect.poll(held, { timeout: 30_000 }).toBe('');
  expect(fleet.members.filter(({ refusals }) => refusals > 0)).toEqual([]);
  expect(deployment.registries.map(({ restarts }) => restarts > 0)).toEqual([true, true]);
});
