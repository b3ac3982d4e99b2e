import { sleep } from '@rollcall/platform/retry.ts';
import { request } from 'undici';
import { quantile } from './statistics.ts';
import { openSubscriber, type SubscriberConnection } from './subscriber.ts';
import { type LoadResult, nameOf, type SubscribersTask } from './tasks.ts';

/** Upgrades under way at once. */
const OPENING = 50;
const OPEN_TIMEOUT_MS = 60_000;
const SETTLE_MS = 3000;
const SUBSCRIBE = JSON.stringify({ type: 'subscribe', channel: 'registrations' });
const SYNCED = Buffer.from('"synced"');

/** Runs a {@link SubscribersTask}. */
export async function runSubscribersLoad(task: SubscribersTask): Promise<LoadResult> {
  const { subscribers, names, intervalMs } = task;
  const hearing = new Hearing();
  const connections = await openAll(task, (payload) => hearing.hear(payload));
  let open = connections.length;
  const countDown = async ({ ended }: SubscriberConnection): Promise<void> => {
    await ended;
    open -= 1;
  };
  for (const connection of connections) void countDown(connection);
  try {
    await hearing.untilSynced(subscribers);
    await sleep(SETTLE_MS);
    const startedAtMs = performance.now();
    const cpuBefore = process.cpuUsage();
    const statuses: Record<string, number> = {};
    for (let index = 0; index < names.count; index += 1) {
      const name = nameOf(names, index);
      hearing.expect(name);
      const status = await register(task, name);
      statuses[status] = (statuses[status] ?? 0) + 1;
      await sleep(Math.max(0, startedAtMs + (index + 1) * intervalMs - performance.now()));
    }
    const elapsedMs = performance.now() - startedAtMs;
    const cpu = process.cpuUsage(cpuBefore);
    const expected = names.count * subscribers;
    const { latencies } = hearing;
    return {
      requests: expected,
      failures: expected - latencies.length + (subscribers - open),
      statuses,
      startedAtMs: performance.timeOrigin + startedAtMs,
      elapsedMs,
      perSecond: (latencies.length / elapsedMs) * 1000,
      latencyMs: { p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99), max: quantile(latencies, 1) },
      generatorCpuMs: (cpu.user + cpu.system) / 1000,
    };
  } finally {
    for (const connection of connections) connection.close();
  }
}

/** What the subscribers have received. */
class Hearing {
  readonly latencies: number[] = [];
  #synced = 0;
  #name: Buffer | undefined;
  #sinceMs = 0;

  /** From now on an event of this service counts. */
  expect(name: string): void {
    this.#name = Buffer.from(`"service_name":"${name}"`);
    this.#sinceMs = performance.now();
  }

  hear(payload: Buffer): void {
    if (this.#name !== undefined && payload.includes(this.#name))
      this.latencies.push(performance.now() - this.#sinceMs);
    else if (this.#name === undefined && payload.includes(SYNCED)) this.#synced += 1;
  }

  async untilSynced(count: number): Promise<void> {
    const untilMs = performance.now() + OPEN_TIMEOUT_MS;
    while (this.#synced < count) {
      if (performance.now() > untilMs) throw new Error(`Only ${this.#synced} of ${count} subscriptions are in step`);
      await sleep(50);
    }
  }
}

async function openAll(task: SubscribersTask, onText: (payload: Buffer) => void): Promise<SubscriberConnection[]> {
  const connections: SubscriberConnection[] = [];
  let next = 0;
  const openSome = async (): Promise<void> => {
    while (next < task.subscribers) {
      const token = task.tokens[next % task.tokens.length] ?? '';
      next += 1;
      connections.push(await openSubscriber({ port: task.port, path: '/api/ws', token, greeting: SUBSCRIBE, onText }));
    }
  };
  await Promise.all(Array.from({ length: OPENING }, openSome));
  return connections;
}

async function register({ registryPort }: SubscribersTask, name: string): Promise<number> {
  const { statusCode, body } = await request(`http://127.0.0.1:${registryPort}/api/v1/services/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ service_name: name, service_url: `http://${name}.example:8080`, capabilities: ['rest'] }),
  });
  await body.dump();
  return statusCode;
}
