import { commonError } from '@rollcall/platform/common-errors.ts';
import { callerOf } from '@rollcall/platform/http/callers.ts';
import { idempotencyKeyOf, sendOnceAnswer } from '@rollcall/platform/http/idempotency.ts';
import { seesAll } from '@rollcall/platform/http/scopes.ts';
import type { Answer, Idempotency } from '@rollcall/platform/postgres/idempotency.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Owner } from '../domain/lists.ts';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Whose things the caller sees. */
export function ownerOf(request: Pick<FastifyRequest, 'caller'>): Owner {
  const caller = callerOf(request);
  return seesAll(caller, 'billing') ? undefined : caller.subject;
}

/** Whether it may be the id of anything. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** The id in the path. @throws ServiceError NOT_FOUND for what is none. */
export function idOf({ params }: { readonly params: { readonly id: string } }): string {
  if (!isUuid(params.id)) throw commonError('NOT_FOUND');
  return params.id;
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
    const keyed = { subject, operation, key: idempotencyKeyOf(headers), request: { params, body } };
    // Over when the answer is sent: hooks may still be at work on it.
    await sendOnceAnswer(reply, await idempotency.once(keyed, effect));
  };
}
