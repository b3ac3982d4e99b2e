import { storableText } from '@rollcall/platform/outbound/foreign-text.ts';
import { parse } from 'csv-parse/sync';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { isCurrency, parseDecimal } from '../../domain/money.ts';
import type { SettlementLine } from '../../domain/ports.ts';
import { type NoResult, UNREADABLE } from '../call.ts';
import { type PayFastApi, southAfricanTime } from './api.ts';

/** PayFast's most rows for a call. */
const PAGE = 1000;
/** No list of ours is longer; it keeps a list that repeats itself from never ending. */
const MOST_PAGES = 1000;

const Row = Type.Object({
  Date: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2} \\d{2}:\\d{2}:\\d{2}$' }),
  Type: Type.String(),
  Currency: Type.String(),
  Gross: Type.String(),
  Fee: Type.String(),
  Net: Type.String(),
  'M Payment ID': Type.String({ maxLength: 255 }),
  'PF Payment ID': Type.String({ maxLength: 255 }),
});

/** The lines of PayFast's list, or why there are none. */
export type History =
  | { readonly isAnswered: true; readonly lines: readonly SettlementLine[] }
  | { readonly isAnswered: false; readonly result: NoResult };

/** All transactions of the days from one instant to another, by `GET /transactions/history`. */
export async function fetchHistory(api: PayFastApi, from: Date, to: Date): Promise<History> {
  const lines: SettlementLine[] = [];
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const asked = await api({
      method: 'GET',
      path: '/transactions/history',
      query: [
        ['from', dayOf(from)],
        ['to', dayOf(to)],
        ['limit', `${PAGE}`],
        ['offset', `${page * PAGE}`],
      ],
    });
    if (!asked.isAnswered) return asked;
    const rows = asked.answer.status === 200 ? parseHistory(asked.answer.body) : undefined;
    if (rows === undefined) return { isAnswered: false, result: UNREADABLE };
    lines.push(...rows);
    if (rows.length < PAGE) return { isAnswered: true, lines };
  }
  return { isAnswered: false, result: UNREADABLE };
}

/**
 * Pure. The rows of the CSV, amounts in minor units; undefined where it is not that list. Of two
 * spellings of types, `FUNDS_RECEIVED` and `Funds Received (Refund)`, both are read.
 */
export function parseHistory(csv: string): readonly SettlementLine[] | undefined {
  let header: readonly string[] = [];
  let rows: unknown[];
  try {
    const columns = (names: string[]) => {
      header = names;
      return names;
    };
    rows = parse(storableText(csv), {
      columns,
      bom: true,
      skip_empty_lines: true,
      trim: true,
      relax_column_count: true,
    });
  } catch {
    return undefined;
  }
  // A page of one line has no rows either.
  if (!Object.keys(Row.properties).every((name) => header.includes(name))) return undefined;
  const lines = rows.map(lineOf);
  return lines.every((line) => line !== undefined) ? lines : undefined;
}

function lineOf(row: unknown): SettlementLine | undefined {
  if (!Value.Check(Row, row)) return undefined;
  const { Currency: currency, 'M Payment ID': paymentId, 'PF Payment ID': chargeRef } = row;
  const [gross, fee, net] = [row.Gross, row.Fee, row.Net].map((text) => amountOf(text, currency));
  if (gross === undefined || fee === undefined || net === undefined) return undefined;
  return {
    kind: kindOf(row.Type),
    at: new Date(`${row.Date.replace(' ', 'T')}+02:00`),
    currency,
    gross,
    fee,
    net,
    ...(chargeRef === '' ? {} : { chargeRef }),
    ...(paymentId === '' ? {} : { paymentId }),
  };
}

function kindOf(type: string): SettlementLine['kind'] {
  if (/refund|reversal/i.test(type)) return 'refund';
  return /^funds.received$/i.test(type) ? 'payment' : 'other';
}

function amountOf(text: string, currency: string): bigint | undefined {
  if (text === '') return 0n;
  return isCurrency(currency) ? parseDecimal(text.replaceAll(',', ''), currency) : undefined;
}

function dayOf(at: Date): string {
  return southAfricanTime(at).slice(0, 10);
}
