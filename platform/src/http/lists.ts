import { type Static, Type } from 'typebox';
import { invalidRequest } from '../common-errors.ts';
import { parseDateTime } from '../date-time.ts';
import type { ListPage } from '../lists.ts';
import { isCursor } from '../postgres/page.ts';
import { documented } from './documented.ts';
import { patternInWords } from './patterns.ts';

const DEFAULT_LIMIT = 20;

/** The members of a list's query, for `Type.Object({ ...listQuery, status: … }, strict)`. */
export const listQuery = {
  // Texts, because 1.5 would be converted to 1.
  limit: Type.Optional(
    Type.String({
      ...patternInWords('^(?:[1-9][0-9]?|100)$', 'must be a number from 1 to 100'),
      description: '1 to 100; 20 when absent',
    }),
  ),
  offset: Type.Optional(
    Type.String({
      ...patternInWords('^(?:0|[1-9][0-9]{0,3}|10000)$', 'must be a number from 0 to 10000'),
      description: '0 to 10000; 0 when absent',
    }),
  ),
  cursor: Type.Optional(
    Type.Refine(
      Type.String({ maxLength: 128, description: '`nextCursor` of the page before; instead of `offset`' }),
      isCursor,
      () => 'must be nextCursor of a page',
    ),
  ),
} as const;

const Instant = (description: string) =>
  Type.Refine(
    Type.String({ maxLength: 64, description, ...documented({ format: 'date-time' }) }),
    (text) => parseDateTime(text) !== undefined,
    () => 'must be a timestamp of RFC 3339, such as 2026-11-27T10:00:00Z',
  );

/** Beside {@link listQuery}, of lists that can be cut by when their things were made. */
export const createdQuery = {
  from: Type.Optional(Instant('What was made then or later')),
  to: Type.Optional(Instant('What was made before')),
} as const;

/** Of the answer of a list. */
export const Total = Type.Integer({ description: 'How many the list has, whatever the page; 10000: so many or more' });

const ListQuery = Type.Object({ ...listQuery, ...createdQuery });

/** @throws ServiceError INVALID_REQUEST where it begins in two ways, or ends before it begins. */
export function pageOf({ limit, offset, cursor, ...created }: Static<typeof ListQuery>): ListPage {
  const [from, to] = [created.from, created.to].map((text) => (text === undefined ? text : parseDateTime(text)));
  if (from !== undefined && to !== undefined && to < from)
    throw invalidRequest([{ path: 'query/to', message: 'must not be before from' }]);
  if (cursor !== undefined && offset !== undefined)
    throw invalidRequest([{ path: 'query/offset', message: 'must not be there with a cursor' }]);
  return { limit: Number(limit ?? DEFAULT_LIMIT), offset: Number(offset ?? 0), cursor, from, to };
}
