import type { LoadGenerator } from '../../load/load-generator.ts';
import { alternate, failuresOf, medianCpu, medianRate, medianRatio } from '../../load/rounds.ts';
import type { LoadResult, Statement } from '../../load/tasks.ts';
import { atLeast, atMost, figure, type Row } from '../../report.ts';
import { insertOf, type Tables } from '../../stage/tables.ts';
import { PAYMENT, type Paying } from './paying.ts';

const PEOPLE = 1000;
const PER_ROUND = 1000;
const CONNECTIONS = 32;
/** As many as the pool of a service has. */
const DATABASE_CONNECTIONS = 20;

/** Whose payments they are. */
export const SHOP = 'shop';

/** `POST /payments` at the sandbox, against transactions that write the same rows. */
export async function makingRows(
  paying: Paying,
  { generator, log }: { readonly generator: LoadGenerator; readonly log: (line: string) => void },
): Promise<Row[]> {
  const { service, databaseUrl, tables } = paying;
  const { headers } = await paying.callerOf(SHOP);
  const make = (): Promise<LoadResult> =>
    generator.run({
      kind: 'http',
      port: service.port,
      method: 'POST',
      path: '/api/v1/payments',
      headers,
      body: JSON.stringify(PAYMENT),
      names: { prefix: '', first: 0, count: PEOPLE },
      connections: CONNECTIONS,
      pace: { amount: PER_ROUND },
    });
  await make();
  const transactions = await transactionsOf(tables);
  const write = (): Promise<LoadResult> =>
    generator.run({
      kind: 'transactions',
      databaseUrl,
      schema: 'payment',
      transactions,
      connections: DATABASE_CONNECTIONS,
      pace: { amount: PER_ROUND },
    });
  await write();
  log('payment: making payments');
  const runs = await alternate({
    service: { cpuMs: () => service.cpuMs(), run: make },
    bare: { cpuMs: async () => 0, run: write },
  });
  log(`payment: busy when making payments: ${runs.describeShares()}`);
  const [made, bare] = [runs.of('service'), runs.of('bare')];
  return [
    figure('bare transactions of the rows of a payment', medianRate(bare), '1/s'),
    figure('payments made', medianRate(made), '1/s'),
    atLeast(0.35, figure('payments made / bare transactions', medianRatio(made, bare), '')),
    figure('CPU per payment', medianCpu(made), 'µs'),
    atMost(0, figure('refused payments', failuresOf([...made, ...bare]), '')),
  ];
}

/** What the service writes: the payment, that the provider is called, and its checkout. */
async function transactionsOf(tables: Tables): Promise<readonly (readonly Statement[])[]> {
  const { rows } = await tables.query<{ id: string }>('SELECT id FROM payments LIMIT 1');
  const id = rows[0]?.id;
  const replaced = { id: '{0}', subject: 'bare', page_token_hash: '{1x}', checkout_ref: '{0}' };
  const payment = await insertOf(tables, { table: 'payments', where: `id = '${id}'`, replaced });
  const history = (event: string): Promise<Statement> =>
    insertOf(tables, {
      table: 'payment_events',
      where: `payment_id = '${id}' AND event = '${event}'`,
      replaced: { payment_id: '{0}' },
    });
  const event = await insertOf(tables, {
    table: 'events',
    where: `resource_id = '${id}'`,
    replaced: { id: '{2}', subject: 'bare', resource_id: '{0}' },
  });
  return [
    [payment, await history('created'), withoutPosition(event)],
    [update("called_at = now(), due_at = now() + interval '1 minute'")],
    [update("due_at = now() + interval '1 day', checkout_ref = id::text"), await history('checkout_made')],
  ];
}

function update(set: string): Statement {
  return { text: `UPDATE payments SET ${set}, updated_at = now() WHERE id = $1`, values: ['{0}'] };
}

/** Positions are unique; the service gives the event one, as it does to its own. */
function withoutPosition({ text, values }: Statement): Statement {
  const names = text.slice(text.indexOf('(') + 1, text.indexOf(')')).split(', ');
  return { text, values: values.map((value, index) => (names[index] === 'position' ? null : value)) };
}
