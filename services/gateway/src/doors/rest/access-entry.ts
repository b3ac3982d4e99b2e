import { pathOf } from '@rollcall/platform/http/server.ts';
import type { TraceContext } from '@rollcall/platform/tracing/trace-context.ts';
import type { FastifyRequest } from 'fastify';
import { type AccessEntry, type AccessLog, refusalFields, rounded } from '../../access-log.ts';
import { shownPath } from '../../upstream/routing/secret-paths.ts';
import { traceIdFor } from '../trace-context.ts';
import type { Outcome } from './rest.ts';

/** A request, as far as it is known when it ends. */
interface EndedRequest {
  readonly request: FastifyRequest;
  /** The trace that the caller says the request belongs to. */
  readonly trace: TraceContext | undefined;
  readonly service: string | undefined;
  readonly subject: string | undefined;
}

/** Logs a request that was sent to a service. */
export function logOutcome(
  accessLog: AccessLog,
  request: EndedRequest,
  { outcome, ms }: { readonly outcome: Outcome; readonly ms: number },
): void {
  const entry = { ...fieldsOf(request), result: resultOf(outcome), ms: rounded(ms), retries: outcome.retries };
  if (outcome.type !== 'failed') return accessLog.write(entry);
  const { blame, reason } = outcome.failure;
  if (blame === 'caller') accessLog.write({ ...entry, reason });
  else accessLog.warn({ ...entry, reason });
}

/** Logs a request that the gateway refuses. */
export function logRefusal(
  accessLog: AccessLog,
  request: EndedRequest,
  { error, ms }: { readonly error: unknown; readonly ms: number },
): void {
  accessLog.write({ ...fieldsOf(request), ...refusalFields(error), ms: rounded(ms) });
}

function fieldsOf({ request, trace, service, subject }: EndedRequest): Omit<AccessEntry, 'result' | 'ms'> {
  const { method, span, raw } = request;
  const path = shownPath(pathOf(raw.url));
  return { reqId: request.id, trace_id: traceIdFor(span, trace), method, path, service, subject };
}

function resultOf(outcome: Outcome): AccessEntry['result'] {
  if (outcome.type === 'answered') return outcome.status;
  return outcome.type === 'failed' ? outcome.failure.code.toLowerCase() : 'abandoned';
}
