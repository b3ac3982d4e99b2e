import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { invalidRequest } from '../common-errors.ts';
import { type OnceAnswer, REPLAYED_HEADER } from '../postgres/idempotency.ts';
import { patternInWords } from './patterns.ts';

const HEADER = 'idempotency-key';

const key = Type.String({
  minLength: 1,
  maxLength: 255,
  ...patternInWords('^[ -~]+$', 'must have printable characters of ASCII alone'),
  description: 'Calls with the same key have one effect, and get the answer of the first, for 24 hours',
});

/** The schema of a route's headers, for each POST. */
export const idempotencyHeaders = Type.Object({ [HEADER]: Type.Optional(key) });

/** The key of a request whose headers fit {@link idempotencyHeaders}. */
export function idempotencyKeyOf(headers: IncomingHttpHeaders): string | undefined {
  return headers[HEADER]?.toString();
}

/**
 * The key of a mutation of GraphQL: of the header or of its input.
 *
 * @param inInput `input.idempotencyKey`.
 * @throws ServiceError INVALID_REQUEST where it is none, or the two differ.
 */
export function mutationKeyOf(headers: IncomingHttpHeaders, inInput: string | null | undefined): string | undefined {
  const inHeader = idempotencyKeyOf(headers);
  const given = [
    { path: `headers/${HEADER}`, value: inHeader },
    { path: 'input/idempotencyKey', value: inInput ?? undefined },
  ];
  const faults = given
    .filter(({ value }) => value !== undefined && !Value.Check(key, value))
    .map(({ path }) => ({ path, message: 'must be of 1 to 255 printable ASCII characters' }));
  if (faults.length > 0) throw invalidRequest(faults);
  const [first, second] = given.flatMap(({ value }) => value ?? []);
  if (second !== undefined && first !== second)
    throw invalidRequest([{ path: 'input/idempotencyKey', message: 'must be that of the header' }]);
  return first;
}

/** Sends what {@link OnceAnswer} says: status, Location, and whether it is a repetition. */
export function sendOnceAnswer(reply: FastifyReply, { answer, isReplayed }: OnceAnswer): FastifyReply {
  if (answer.location !== undefined) reply.header('location', answer.location);
  if (isReplayed) reply.header(REPLAYED_HEADER, 'true');
  return reply.status(answer.status).send(answer.body);
}
