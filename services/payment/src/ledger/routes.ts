import { Readable } from 'node:stream';
import { ownerOf, strict } from '@rollcall/platform/http/resources.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { Type } from 'typebox';
import { formatDecimal } from '../domain/money.ts';
import { Day, spanOf } from './days.ts';
import type { Ledger, Movement } from './store.ts';

const tags = ['ledger'];
const MOST_DAYS = 366;

const CSV = {
  200: {
    description: 'Comma-separated values with a head (RFC 4180)',
    content: { 'text/csv': { schema: Type.Unsafe<Readable>({ type: 'string' }) } },
  },
};

/** What moved, and where it is. @param ledger sees what belongs to the caller. */
export function ledgerRoutes(ledger: Ledger): Routes {
  return (app) => {
    app.get(
      '/ledger/balances',
      {
        schema: {
          tags,
          summary: 'What each account holds, in minor units; a debit is positive',
          response: {
            200: Type.Object({
              balances: Type.Array(
                Type.Object({ account: Type.String(), currency: Type.String(), amount: Type.Integer() }),
              ),
            }),
          },
        },
      },
      async (request) => {
        const balances = await ledger.balances(ownerOf(request, 'payments'));
        return { balances: balances.map((balance) => ({ ...balance, amount: Number(balance.amount) })) };
      },
    );
    app.get(
      '/reports/settlement',
      {
        schema: {
          tags,
          summary: 'What providers took, kept and gave back in some days',
          querystring: Type.Object({ from: Day, to: Day }, strict),
          response: CSV,
        },
      },
      async (request, reply) => {
        const { from, to } = request.query;
        const query = { owner: ownerOf(request, 'payments'), ...spanOf(from, to, MOST_DAYS) };
        const lines = Readable.from(csvOf(ledger.movements(query)));
        reply.header('content-disposition', `attachment; filename="settlement-${from}-${to}.csv"`);
        return reply.type('text/csv; charset=utf-8').send(lines);
      },
    );
  };
}

/** Nothing in it needs quoting. */
async function* csvOf(movements: AsyncGenerator<Movement>): AsyncGenerator<string> {
  yield 'at,kind,provider,currency,amount,paymentId\r\n';
  for await (const { at, kind, provider, currency, amount, paymentId } of movements) {
    const decimal = formatDecimal(amount, currency);
    yield `${at.toISOString()},${kind},${provider},${currency},${decimal},${paymentId ?? ''}\r\n`;
  }
}
