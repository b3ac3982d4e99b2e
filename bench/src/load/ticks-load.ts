import { sleep } from '@rollcall/platform/retry.ts';
import { quantile } from './statistics.ts';
import { openSubscriber, type SubscriberConnection } from './subscriber.ts';
import type { LoadResult, TicksTask } from './tasks.ts';

/** Upgrades under way at once. */
const OPENING = 50;
const OPEN_TIMEOUT_MS = 60_000;
const SETTLE_MS = 3000;
const ACKNOWLEDGED = Buffer.from('"connection_ack"');
const AT = Buffer.from('"at":');
const INIT = JSON.stringify({ type: 'connection_init' });

/** Runs a {@link TicksTask}. Its requests are the events that came, its failures lost subscriptions. */
export async function runTicksLoad(task: TicksTask): Promise<LoadResult> {
  const heard: Heard = { subscriptions: 0, latencies: [], isCounting: false };
  const connections = await openAll(task, heard);
  let open = connections.length;
  const countDown = async ({ ended }: SubscriberConnection): Promise<void> => {
    await ended;
    open -= 1;
  };
  for (const connection of connections) void countDown(connection);
  try {
    const untilMs = performance.now() + OPEN_TIMEOUT_MS;
    while (heard.subscriptions < task.subscribers) {
      if (performance.now() > untilMs) throw new Error(`Only ${heard.subscriptions} subscriptions have an event`);
      await sleep(50);
    }
    await sleep(SETTLE_MS);
    heard.isCounting = true;
    const startedAtMs = performance.now();
    const cpuBefore = process.cpuUsage();
    await sleep(task.durationMs);
    heard.isCounting = false;
    const elapsedMs = performance.now() - startedAtMs;
    const cpu = process.cpuUsage(cpuBefore);
    const { latencies } = heard;
    return {
      requests: latencies.length,
      failures: task.subscribers - open,
      statuses: {},
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
interface Heard {
  /** That have had an event. */
  subscriptions: number;
  readonly latencies: number[];
  isCounting: boolean;
}

async function openAll(task: TicksTask, heard: Heard): Promise<SubscriberConnection[]> {
  const connections: SubscriberConnection[] = [];
  let next = 0;
  const openSome = async (): Promise<void> => {
    while (next < task.subscribers) {
      const index = next;
      next += 1;
      connections.push(await openOne(task, index, heard));
    }
  };
  await Promise.all(Array.from({ length: OPENING }, openSome));
  return connections;
}

/** Callers and topics in turn, so that each topic of a caller has as many subscribers. */
function openOne(
  { port, path, tokens, topics }: TicksTask,
  index: number,
  heard: Heard,
): Promise<SubscriberConnection> {
  const topic = Math.floor(index / tokens.length) % topics;
  const query = `subscription{tick(topic:"${topic}"){at}}`;
  const subscribe = JSON.stringify({ id: '1', type: 'subscribe', payload: { query } });
  let hasEvent = false;
  return openSubscriber({
    port,
    path,
    subprotocol: 'graphql-transport-ws',
    token: tokens[index % tokens.length] ?? '',
    greeting: INIT,
    onText(payload, send) {
      const at = payload.indexOf(AT);
      if (at === -1) {
        if (payload.includes(ACKNOWLEDGED)) send(subscribe);
        return;
      }
      if (!hasEvent) heard.subscriptions += 1;
      hasEvent = true;
      if (!heard.isCounting) return;
      const happenedAtMs = Number.parseFloat(payload.toString('latin1', at + AT.length));
      heard.latencies.push(performance.timeOrigin + performance.now() - happenedAtMs);
    },
  });
}
