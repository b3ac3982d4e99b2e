import { sleep } from '@rollcall/platform/retry.ts';
import type { LoadGenerator } from '../../load/load-generator.ts';
import { atMost, figure, type Row } from '../../report.ts';
import { memoryGrowthRows, sample } from '../../stage/samples.ts';
import { callersOf, MAIL, type Messaging } from './messaging.ts';

const SUBJECTS = 200;
const PER_SECOND = 50;
const CONNECTIONS = 32;
const WARM_UP_MS = 20_000;
const MOST_MIB = 180;

interface Steady {
  readonly generator: LoadGenerator;
  readonly minutes: number;
  readonly log: (line: string) => void;
}

/** Whether memory stays what it is while mails are accepted and sent. */
export async function steadyRows(messaging: Messaging, { generator, minutes, log }: Steady): Promise<Row[]> {
  const { service } = messaging;
  const asking = generator.run({
    kind: 'http',
    port: service.port,
    method: 'POST',
    path: '/api/v1/emails',
    body: JSON.stringify(MAIL),
    inTurn: await callersOf(messaging, 'steady', SUBJECTS),
    names: { prefix: '', first: 0, count: SUBJECTS },
    connections: CONNECTIONS,
    pace: { ratePerSecond: PER_SECOND, durationMs: WARM_UP_MS + minutes * 60_000, settleMs: WARM_UP_MS },
  });
  log(`communication: ${PER_SECOND} mails/s for ${minutes} minutes`);
  await Promise.race([sleep(WARM_UP_MS), asking]);
  const samples = await sample(service, minutes * 60_000);
  const asked = await asking;
  return [
    figure(`p99 of an answer at ${PER_SECOND} mails/s`, asked.latencyMs.p99, 'ms'),
    atMost(0, figure(`refused messages at ${PER_SECOND} mails/s`, asked.failures, '')),
    ...memoryGrowthRows(`at ${PER_SECOND} mails/s`, samples, MOST_MIB),
  ];
}
