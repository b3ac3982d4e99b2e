import { sleep } from '@rollcall/platform/retry.ts';
import type { LoadGenerator } from '../../load/load-generator.ts';
import { atMost, figure, type Row } from '../../report.ts';
import { memoryGrowthRows, sample } from '../../stage/samples.ts';
import { SHOP } from './making.ts';
import { PAYMENT, type Paying } from './paying.ts';

const PEOPLE = 1000;
const PER_SECOND = 50;
const CONNECTIONS = 32;
const WARM_UP_MS = 20_000;
const MOST_MIB = 180;

interface Steady {
  readonly generator: LoadGenerator;
  readonly minutes: number;
  readonly log: (line: string) => void;
}

/** Whether memory stays what it is while payments are made. */
export async function steadyRows(paying: Paying, { generator, minutes, log }: Steady): Promise<Row[]> {
  const { service } = paying;
  const { headers } = await paying.callerOf(SHOP);
  const asking = generator.run({
    kind: 'http',
    port: service.port,
    method: 'POST',
    path: '/api/v1/payments',
    headers,
    body: JSON.stringify(PAYMENT),
    names: { prefix: '', first: 0, count: PEOPLE },
    connections: CONNECTIONS,
    pace: { ratePerSecond: PER_SECOND, durationMs: WARM_UP_MS + minutes * 60_000, settleMs: WARM_UP_MS },
  });
  log(`payment: ${PER_SECOND} payments/s for ${minutes} minutes`);
  await Promise.race([sleep(WARM_UP_MS), asking]);
  const samples = await sample(service, minutes * 60_000);
  const asked = await asking;
  return [
    figure(`p99 of an answer at ${PER_SECOND} payments/s`, asked.latencyMs.p99, 'ms'),
    atMost(0, figure(`refused payments at ${PER_SECOND} payments/s`, asked.failures, '')),
    ...memoryGrowthRows(`at ${PER_SECOND} payments/s`, samples, MOST_MIB),
  ];
}
