import { invalidRequest } from '@rollcall/platform/common-errors.ts';
import { documented } from '@rollcall/platform/http/documented.ts';
import { patternInWords } from '@rollcall/platform/http/patterns.ts';
import { Type } from 'typebox';
import type { Span } from '../domain/settlement-check.ts';

export const DAY_MS = 24 * 3_600_000;

/** Of a query. */
export const Day = Type.Refine(
  Type.String({
    ...patternInWords('^[2-9]\\d{3}-\\d{2}-\\d{2}$', 'must be a day such as 2026-11-27'),
    description: 'A day in UTC, such as 2026-11-27',
    ...documented({ format: 'date' }),
  }),
  isDay,
  () => 'must be a day that there is',
);

/** Both days are in it. @param mostDays how long it may be. @throws ServiceError INVALID_REQUEST where they are no span, or too long. */
export function spanOf(from: string, to: string, mostDays: number): Span {
  const start = new Date(`${from}T00:00:00Z`);
  const end = new Date(Date.parse(`${to}T00:00:00Z`) + DAY_MS);
  const days = (end.getTime() - start.getTime()) / DAY_MS;
  if (days < 1) throw invalidRequest([{ path: 'query/to', message: 'must not be before from' }]);
  if (days > mostDays) throw invalidRequest([{ path: 'query/to', message: `must be within ${mostDays} days` }]);
  return { from: start, to: end };
}

function isDay(day: string): boolean {
  const at = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(day);
}
