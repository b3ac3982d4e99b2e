import type { Clock } from '@rollcall/platform/clock.ts';
import type { Static } from 'typebox';
import type { Lookup, PaymentQuestion, ProviderFact, SettlementLine } from '../../domain/ports.ts';
import { readJson, unknownLookup } from '../call.ts';
import { CardTransaction, type PayFastApi } from './api.ts';
import { fetchHistory } from './history.ts';
import { PAYFAST_CURRENCY } from './settings.ts';

/**
 * A charge that the history does not have a day later was never made: the list is of what was
 * received, and a charge ends while it is called (docs/decisions/0351).
 */
const SURELY_LISTED_MS = 24 * 60 * 60 * 1000;

/**
 * What PayFast has of a payment: a card transaction by its id or its method (`/process/query`), else
 * the row of the history that has our id.
 */
export async function lookUpPayment(api: PayFastApi, clock: Clock, question: PaymentQuestion): Promise<Lookup> {
  const { paymentId, chargeRef, method, createdAt } = question;
  const id = chargeRef ?? method?.token;
  if (id !== undefined) {
    const asked = await api({ method: 'GET', path: `/process/query/${encodeURIComponent(id)}` });
    if (!asked.isAnswered) return unknownLookup(asked.result);
    const transaction = readJson(CardTransaction, asked.answer.body)?.data.response;
    const facts = transaction === undefined ? [] : factsOfTransaction(transaction, question);
    if (facts.length > 0) return { found: 'facts', facts };
  }
  const now = clock.now();
  const history = await fetchHistory(api, createdAt, now);
  if (!history.isAnswered) return unknownLookup(history.result);
  const facts = history.lines.filter((line) => isOf(line, question)).map((line) => factOfLine(line, paymentId));
  if (facts.length > 0) return { found: 'facts', facts };
  // A payer may still decide.
  if (method === undefined) return { found: 'open' };
  return now.getTime() - createdAt.getTime() > SURELY_LISTED_MS ? { found: 'absent' } : { found: 'unknown' };
}

type Transaction = Static<typeof CardTransaction>['data']['response'];

/** Pure. Nothing where the transaction is of another payment: a method's query has its latest one. */
function factsOfTransaction(transaction: Transaction, question: PaymentQuestion): readonly ProviderFact[] {
  const { paymentId } = question;
  const chargeRef = `${transaction.pf_payment_id}`;
  const isOurs = question.chargeRef === chargeRef || `${transaction.m_payment_id ?? ''}` === paymentId;
  if (!isOurs) return [];
  const payment = { paymentId, chargeRef };
  const money = { amount: BigInt(transaction.amount), currency: PAYFAST_CURRENCY };
  if (transaction.status === 'COMPLETE') return [{ kind: 'payment.succeeded', payment, money }];
  if (transaction.status === 'FAILED') return [{ kind: 'payment.failed', payment, reason: 'declined' }];
  return [];
}

function isOf(line: SettlementLine, { paymentId, chargeRef }: PaymentQuestion): boolean {
  return (
    line.kind === 'payment' &&
    (line.paymentId === paymentId || (chargeRef !== undefined && line.chargeRef === chargeRef))
  );
}

function factOfLine({ chargeRef, gross, fee, currency }: SettlementLine, paymentId: string): ProviderFact {
  const payment = { paymentId, ...(chargeRef === undefined ? {} : { chargeRef }) };
  return { kind: 'payment.succeeded', payment, money: { amount: gross, currency }, fee: -fee };
}
