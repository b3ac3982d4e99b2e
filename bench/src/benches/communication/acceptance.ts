import type { LoadGenerator } from '../../load/load-generator.ts';
import { alternate, failuresOf, medianCpu, medianRate, medianRatio } from '../../load/rounds.ts';
import type { LoadResult } from '../../load/tasks.ts';
import { atLeast, atMost, figure, type Row } from '../../report.ts';
import { insertOf } from '../../stage/tables.ts';
import { callersOf, MAIL, type Messaging } from './messaging.ts';

const SUBJECTS = 300;
const PER_ROUND = 2000;
const CONNECTIONS = 32;
/** As many as the pool of a service has. */
const DATABASE_CONNECTIONS = 20;
const DAY_MS = 24 * 3_600_000;

/** Of the rows that are inserted without a service. */
export const BARE_SUBJECT = 'bare';

/**
 * `POST /emails` for tomorrow, so that nothing is sent meanwhile, against INSERTs of the row that it
 * makes.
 */
export async function acceptanceRows(
  messaging: Messaging,
  { generator, log }: { readonly generator: LoadGenerator; readonly log: (line: string) => void },
): Promise<Row[]> {
  const { service, databaseUrl, tables } = messaging;
  const inTurn = await callersOf(messaging, 'accepted', SUBJECTS);
  const sendAt = new Date(Date.now() + DAY_MS).toISOString();
  const accept = (): Promise<LoadResult> =>
    generator.run({
      kind: 'http',
      port: service.port,
      method: 'POST',
      path: '/api/v1/emails',
      body: JSON.stringify({ ...MAIL, tags: ['orders'], metadata: { order: '{name}' }, sendAt }),
      inTurn,
      names: { prefix: '', first: 0, count: SUBJECTS },
      connections: CONNECTIONS,
      pace: { amount: PER_ROUND },
    });
  await accept();
  const replaced = { id: '{0}', subject: BARE_SUBJECT };
  const statement = await insertOf(tables, { table: 'messages', where: "state = 'scheduled'", replaced });
  const insert = (): Promise<LoadResult> =>
    generator.run({
      kind: 'transactions',
      databaseUrl,
      schema: 'communication',
      transactions: [[statement]],
      connections: DATABASE_CONNECTIONS,
      pace: { amount: PER_ROUND },
    });
  await insert();
  log('communication: accepting');
  const runs = await alternate({
    service: { cpuMs: () => service.cpuMs(), run: accept },
    bare: { cpuMs: async () => 0, run: insert },
  });
  log(`communication: busy when accepting: ${runs.describeShares()}`);
  const [accepted, bare] = [runs.of('service'), runs.of('bare')];
  return [
    figure('bare INSERTs of a message', medianRate(bare), '1/s'),
    figure('accepted messages', medianRate(accepted), '1/s'),
    atLeast(0.4, figure('accepted messages / bare INSERTs', medianRatio(accepted, bare), '')),
    figure('CPU per accepted message', medianCpu(accepted), 'µs'),
    atMost(0, figure('refused messages', failuresOf([...accepted, ...bare]), '')),
  ];
}
