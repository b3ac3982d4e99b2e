import { leftOf, type Payment, southAfricanTime } from './account.ts';
import { feeOf, formatRand } from './amounts.ts';

const COLUMNS = [
  'Date',
  'Type',
  'Sign',
  'Party',
  'Name',
  'Description',
  'Currency',
  'Funding Type',
  'Gross',
  'Fee',
  'Net',
  'Balance',
  'M Payment ID',
  'PF Payment ID',
  'custom str1',
  'custom int1',
  'custom str2',
  'custom int2',
  'custom str3',
  'custom str4',
  'custom str5',
  'custom int3',
  'custom int4',
  'custom int5',
];

/** One movement of the merchant's money, in cents. */
interface Movement {
  readonly payment: Payment;
  readonly at: Date;
  readonly type: 'FUNDS_RECEIVED' | 'FUNDS_RECEIVED_REFUND';
  readonly gross: bigint;
  readonly fee: bigint;
}

/** Which rows a history has: from one day to another, both in it, YYYY-MM-DD in South Africa. */
export interface HistoryPage {
  readonly from: string;
  readonly to: string;
  readonly offset: number;
  readonly limit: number;
}

/** `GET /transactions/history`: CSV, the oldest first. */
export function renderHistory(payments: readonly Payment[], { from, to, offset, limit }: HistoryPage): string {
  let balance = 0n;
  const rows = payments
    .flatMap(movementsOf)
    .toSorted((a, b) => a.at.getTime() - b.at.getTime())
    .map((movement) => {
      balance += movement.gross - movement.fee;
      return { day: southAfricanTime(movement.at).slice(0, 10), cells: cellsOf(movement, balance) };
    })
    .filter(({ day }) => day >= from && day <= to)
    .slice(offset, offset + limit);
  return [COLUMNS, ...rows.map(({ cells }) => cells)].map((cells) => `${cells.map(quote).join(',')}\n`).join('');
}

/** The answer of `GET /refunds/{id}`. */
export function refundsOf(payment: Payment): unknown {
  return {
    available_balance: Number(leftOf(payment)),
    transactions: movementsOf(payment).map(({ at, type, gross }) => ({
      amount: type === 'FUNDS_RECEIVED' ? Number(gross) : gross.toString(),
      date: southAfricanTime(at),
      type: type === 'FUNDS_RECEIVED' ? 'Funds Received' : 'Funds Received (Refund)',
    })),
  };
}

function movementsOf(payment: Payment): readonly Movement[] {
  const { amount, paidAt, refunds } = payment;
  return [
    { payment, at: paidAt, type: 'FUNDS_RECEIVED', gross: amount, fee: feeOf(amount) },
    ...refunds.map(
      (refund): Movement => ({ payment, at: refund.at, type: 'FUNDS_RECEIVED_REFUND', gross: -refund.amount, fee: 0n }),
    ),
  ];
}

function cellsOf({ payment, at, type, gross, fee }: Movement, balance: bigint): readonly string[] {
  const field = (name: string): string => payment.fields.get(name) ?? '';
  const custom = ['str1', 'int1', 'str2', 'int2', 'str3', 'str4', 'str5', 'int3', 'int4', 'int5'];
  return [
    southAfricanTime(at),
    type,
    gross < 0n ? 'DEBIT' : 'CREDIT',
    `${field('name_first')} ${field('name_last')}`.trim(),
    field('item_name'),
    field('item_description'),
    'ZAR',
    'CC',
    formatRand(gross),
    formatRand(-fee),
    formatRand(gross - fee),
    formatRand(balance).replace(/\B(?=(?:\d{3})+\.)/g, ','),
    field('m_payment_id'),
    payment.pfPaymentId,
    ...custom.map((name) => field(`custom_${name}`)),
  ];
}

/** A cell of RFC 4180. */
function quote(cell: string): string {
  return /[",\r\n ]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
