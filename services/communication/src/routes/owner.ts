import { commonError } from '@rollcall/platform/common-errors.ts';
import { callerOf } from '@rollcall/platform/http/callers.ts';
import type { Area } from '@rollcall/platform/http/operations/operation.ts';
import { seesAll } from '@rollcall/platform/http/scopes.ts';
import type { FastifyRequest } from 'fastify';

type CalledRequest = Pick<FastifyRequest, 'caller'> & { readonly query: { readonly subject?: string } };

/**
 * Whose things a request is about: the caller's, or those of the subject that its query names.
 *
 * @throws ServiceError NOT_FOUND where that is another subject and the caller does not see all.
 */
export function ownerOf(request: CalledRequest, area: Area): string {
  const caller = callerOf(request);
  const { subject = caller.subject } = request.query;
  if (subject === caller.subject || seesAll(caller, area)) return subject;
  throw commonError('NOT_FOUND');
}
