import { sleep } from '@rollcall/platform/retry.ts';
import type { Bench } from '../bench.ts';
import { median } from '../load/statistics.ts';
import { type NameRange, nameOf } from '../load/tasks.ts';
import { atLeast, atMost, figure, type Row } from '../report.ts';
import { observeExpiries } from '../stage/expiries.ts';
import { clear, urlOf } from '../stage/fleet.ts';

const NAMESPACE = 'bench-ttl';
const TTL_MS = 60_000;
const RESOLUTION_MS = 20;
const WRITTEN: NameRange = { prefix: 'written-', first: 0, count: 5 };
const ABSORBED: NameRange = { prefix: 'absorbed-', first: 0, count: 5 };
/** Within the absorb window of 15 s, and after it. */
const ABSORBED_AFTER_MS = 8_000;
const WRITTEN_AFTER_MS = 17_000;

/**
 * From the last heartbeat of a service until it is gone, at the TTL that the registry gives to
 * everybody.
 */
export const ttl: Bench = {
  name: 'ttl',
  measures: 'time from the last heartbeat until a service is gone, at the TTL of 60 s',
  async run({ stage, log }) {
    await stage.createNamespace(NAMESPACE);
    const operator = await stage.startOperator({ namespace: NAMESPACE });
    const registry = await stage.startRegistry({ namespace: NAMESPACE });
    await using observer = await observeExpiries(stage, NAMESPACE, registry);
    const api = `http://127.0.0.1:${registry.port}/api/v1/services`;
    log('ttl: two minutes');

    async function live(name: string, lastBeatAfterMs: number): Promise<Life> {
      const capabilities = ['rest'];
      await post(`${api}/register`, { service_name: name, service_url: urlOf(name), capabilities });
      await sleep(lastBeatAfterMs);
      const lastBeatAtMs = performance.now();
      await post(`${api}/${name}/heartbeat`);
      await sleep(lastBeatAtMs + TTL_MS - 2000 - performance.now());
      while ((await statusOf(`${api}/${name}`)) === 200) await sleep(RESOLUTION_MS);
      const goneAfterMs = performance.now() - lastBeatAtMs;
      while (!observer.inCluster.has(name)) await sleep(RESOLUTION_MS);
      return { goneAfterMs, expiredAfterMs: (observer.inCluster.get(name) ?? Number.NaN) - lastBeatAtMs };
    }
    const livesOf = (names: NameRange, lastBeatAfterMs: number): Promise<Life[]> =>
      Promise.all(Array.from({ length: names.count }, (_, index) => live(nameOf(names, index), lastBeatAfterMs)));
    const [written, absorbed] = await Promise.all([
      livesOf(WRITTEN, WRITTEN_AFTER_MS),
      livesOf(ABSORBED, ABSORBED_AFTER_MS),
    ]);
    await Promise.all([operator.stop(), registry.stop()]);
    await clear(stage, NAMESPACE);
    return [...rowsOf('last heartbeat written', written), ...rowsOf('last heartbeat absorbed', absorbed)];
  },
};

/** From the last heartbeat, in milliseconds. */
interface Life {
  /** Until the API answered 404. */
  readonly goneAfterMs: number;
  /** Until the phase Expired was seen. */
  readonly expiredAfterMs: number;
}

function rowsOf(title: string, lives: readonly Life[]): Row[] {
  const gone = lives.map(({ goneAfterMs }) => goneAfterMs / 1000);
  const expired = lives.map(({ expiredAfterMs }) => expiredAfterMs / 1000);
  return [
    atLeast(60, figure(`${title}: gone from the API, earliest`, Math.min(...gone), 's')),
    figure(`${title}: gone from the API, median`, median(gone), 's'),
    atMost(61, figure(`${title}: gone from the API, latest`, Math.max(...gone), 's')),
    atMost(61, figure(`${title}: phase Expired, latest`, Math.max(...expired), 's')),
  ];
}

async function post(url: string, body?: object): Promise<void> {
  const content =
    body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(url, { method: 'POST', ...content });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  await response.body?.cancel();
}

async function statusOf(url: string): Promise<number> {
  const response = await fetch(url);
  await response.body?.cancel();
  return response.status;
}
