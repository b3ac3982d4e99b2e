import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { commonError } from '../common-errors.ts';
import type { Answer, Idempotency } from '../postgres/idempotency.ts';
import { callerOf } from './callers.ts';
import { idempotencyKeyOf, sendOnceAnswer } from './idempotency.ts';
import { Total } from './lists.ts';
import type { Area } from './operations/operation.ts';
import { seesAll } from './scopes.ts';

/** Of objects that callers send. */
export const strict = { additionalProperties: false } as const;

/** Of the answer of a list, beside the list itself. */
export const pageAnswer = {
  total: Total,
  limit: Type.Integer(),
  offset: Type.Integer(),
  nextCursor: Type.Union([Type.String(), Type.Null()], { description: '`cursor` of the next page; null: none' }),
} as const;

/** The answer of routes that have nothing to say. */
export const noContent = { 204: Type.Null({ description: 'It is done' }) } as const;

/** Of routes to one thing. What is no UUID is not found. */
export const IdParams = Type.Object({ id: Type.String({ description: 'UUID' }) });

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Whether it may be the id of anything. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** The id in the path. @throws ServiceError NOT_FOUND for what is none. */
export function idOf({ params }: { readonly params: { readonly id: string } }): string {
  if (!isUuid(params.id)) throw commonError('NOT_FOUND');
  return params.id;
}

/** Whose things the caller sees: those of a subject, or of all where undefined. */
export function ownerOf(request: Pick<FastifyRequest, 'caller'>, area: Area): string | undefined {
  const caller = callerOf(request);
  return seesAll(caller, area) ? undefined : caller.subject;
}

/** @throws ServiceError NOT_FOUND where there is nothing, or it belongs to another subject. */
export function found<T>(thing: T | undefined): T {
  if (thing === undefined) throw commonError('NOT_FOUND');
  return thing;
}

interface KeyedEffect {
  /** The same by every door, such as `createPlan`. */
  readonly operation: string;
  /** See {@link Idempotency.once}. */
  readonly effect: (id: string) => Promise<Answer>;
}

/** Answers a POST, which has one effect for each Idempotency-Key. */
export function answersOnce(idempotency: Idempotency) {
  return async (request: FastifyRequest, reply: FastifyReply, call: KeyedEffect): Promise<void> => {
    const { params, body, headers } = request;
    const { operation, effect } = call;
    const { subject } = callerOf(request);
    const about = Value.Check(IdParams, params) && isUuid(params.id) ? params.id : undefined;
    const keyed = { subject, operation, key: idempotencyKeyOf(headers), request: { params, body }, about };
    // Over when the answer is sent: hooks may still be at work on it.
    await sendOnceAnswer(reply, await idempotency.once(keyed, effect));
  };
}
