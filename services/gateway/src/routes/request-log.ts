import type { RawRefusal } from '@rollcall/platform/http/raw-refusals.ts';
import { type App, pathOf } from '@rollcall/platform/http/server.ts';
import { type AccessEntry, type AccessLog, refusalFields, rounded } from '../access-log.ts';
import { givenTraceContext, traceIdFor } from '../doors/trace-context.ts';
import { shownPath } from '../upstream/routing/secret-paths.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What its route adds to the access log; absent where that is off. */
    accessFields?: AccessFields | undefined;
  }
}

type AccessFields = { -readonly [Field in 'subject' | 'client' | 'code']?: AccessEntry[Field] };

/**
 * Has each request to the routes of a scope logged. The proxied ones do that themselves: they know
 * more of them.
 */
export function logRequests(app: App, accessLog: AccessLog | undefined): void {
  app.decorateRequest('accessFields', undefined);
  if (accessLog === undefined) return;
  app.addHook('onRequest', (request, _reply, done) => {
    request.accessFields = {};
    done();
  });
  app.addHook('onError', async (request, _reply, error) => {
    if (request.accessFields !== undefined) request.accessFields.code = refusalFields(error).code;
  });
  app.addHook('onResponse', (request, reply, done) => {
    const { headers, method, span, accessFields } = request;
    accessLog.write({
      reqId: request.id,
      trace_id: traceIdFor(span, givenTraceContext(headers)),
      method,
      path: pathOf(request.raw.url),
      ...accessFields,
      result: reply.statusCode,
      ms: rounded(reply.elapsedTime),
    });
    done();
  });
}

/** Has what is refused before it is a request of a route logged, too. */
export function logRawRefusal({ error, request, requestId }: RawRefusal, accessLog: AccessLog): void {
  const path = request === undefined ? undefined : shownPath(pathOf(request.url));
  accessLog.write({ reqId: requestId, method: request?.method, path, ...refusalFields(error), ms: 0 });
}
