import type { Scope } from '@rollcall/platform/http/operations/operation.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type AdmissionDeps, type Arrived, admit } from './admission.ts';
import { bearerToken } from './bearer.ts';
import type { Caller } from './caller.ts';

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/**
 * A request of REST, whose answer gets the headers of the limit.
 *
 * @param onCaller called where it shows a token that is good.
 */
export function arrivedRequest({ request, reply }: Exchange, onCaller: (caller: Caller) => void): Arrived {
  const { raw } = request;
  return {
    remoteAddress: raw.socket.remoteAddress,
    forwardedFor: raw.headers['x-forwarded-for'],
    token: () => bearerToken(raw.headers.authorization),
    onCounted({ caller, headers }) {
      reply.headers(headers);
      if (caller !== undefined) onCaller(caller);
    },
  };
}

/**
 * As {@link admit}, for a route of the gateway's own. For the access log, the request learns whose
 * it is.
 */
export async function admitRequest(deps: AdmissionDeps, exchange: Exchange, scopes: readonly Scope[]): Promise<void> {
  const { accessFields } = exchange.request;
  const arrived = arrivedRequest(exchange, ({ subject }) => {
    if (accessFields !== undefined) accessFields.subject = subject;
  });
  await admit(deps, arrived, () => ({ scopes }));
}
