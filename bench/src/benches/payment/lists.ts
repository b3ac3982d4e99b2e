import type { LoadGenerator } from '../../load/load-generator.ts';
import type { Row } from '../../report.ts';
import { cursorAt, type ListQuery, listRows } from '../../stage/list-latency.ts';
import type { Paying } from './paying.ts';
import { LARGE_SUBJECT, PAYERS, payerOf, SMALL_SUBJECT, storePayments } from './stored-payments.ts';

const STORED = 1_000_000;
const DEEP = 500_000;

/** `GET /payments` by what it can be searched, with a million of them. */
export async function paymentListRows(
  paying: Paying,
  { generator, log }: { readonly generator: LoadGenerator; readonly log: (line: string) => void },
): Promise<Row[]> {
  const { service, tables } = paying;
  log('payment: storing a million payments');
  await storePayments(paying, STORED);
  log('payment: listing');
  const deep = await cursorAt(tables, { table: 'payments', where: `subject = '${LARGE_SUBJECT}'`, offset: DEEP });
  const large = await paying.callerOf(LARGE_SUBJECT);
  const small = await paying.callerOf(SMALL_SUBJECT);
  const admin = await paying.callerOf('admin', 'payments:read payments:admin');
  const { rows } = await tables.query<{ id: string }>(
    `SELECT id FROM payments TABLESAMPLE SYSTEM (0.1) WHERE subject = $1 LIMIT 200`,
    [LARGE_SUBJECT],
  );
  const of = (name: string, { headers }: typeof large, queries: readonly string[]): ListQuery => ({
    name,
    paths: queries.map((query) => `/api/v1/payments${query}`),
    headers,
  });
  const payers = Array.from({ length: 100 }, (_, number) => {
    const payer = payerOf((number * 7919) % PAYERS);
    return `customerEmail=${encodeURIComponent(payer)}`;
  });
  return listRows({ port: service.port, generator }, [
    of('first page', large, ['']),
    of('offset 10,000', large, ['?offset=10000']),
    of('deep cursor', large, [`?cursor=${deep}`]),
    of('by status, often', large, ['?status=succeeded']),
    of('by status, seldom', large, ['?status=needs_review', '?status=disputed']),
    of('by a status that none has', large, ['?status=processing']),
    of('by provider', large, ['?provider=stripe']),
    of('by a provider that none has', large, ['?provider=sandbox']),
    of(
      'by payer',
      large,
      payers.map((payer) => `?${payer}`),
    ),
    of(
      'by payer and status',
      large,
      payers.map((payer) => `?${payer}&status=succeeded`),
    ),
    of('by status and provider', large, ['?status=disputed&provider=stripe']),
    of('of a small subject', small, ['', '?status=failed', '?provider=yoco']),
    of('of all subjects', admin, ['']),
    of('of all subjects by status', admin, ['?status=needs_review', '?status=failed']),
    of(
      'of all subjects by payer',
      admin,
      payers.map((payer) => `?${payer}`),
    ),
    of(
      'one payment',
      large,
      rows.map(({ id }) => `/${id}`),
    ),
  ]);
}
