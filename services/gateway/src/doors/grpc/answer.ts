import { constants, type ServerHttp2Stream } from 'node:http2';
import { codedErrorBody, type HttpError, serverError } from '@rollcall/platform/http/errors.ts';
import { type CallHead, isGrpc } from './headers.ts';
import type { Refusal, Trailers } from './refusal.ts';

/**
 * How often a connection is checked that has something to send before a stream of it may be closed.
 */
const QUEUE_POLL_MS = 20;
const { NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants;

/**
 * Whether its caller has ended it. A reset without an error closes a stream at once, but Node
 * reports it only when all that came before has been read, which may be never: the sweep ends its
 * call.
 */
export function isClosed(stream: ServerHttp2Stream): boolean {
  return stream.closed || stream.destroyed;
}

/** Answers a call with a status and nothing else. @param added to what goes with the refusal. */
export function refuse(
  downstream: ServerHttp2Stream,
  refusal: Refusal,
  added: Readonly<Record<string, string>> = {},
): void {
  if (isClosed(downstream)) return;
  downstream.resume();
  downstream.respond(
    { ':status': 200, 'content-type': 'application/grpc', ...added, ...refusal.trailers() },
    { endStream: true },
  );
  closeWhenSent(downstream);
}

/** Ends an answer that has begun. */
export function endWithTrailers(downstream: ServerHttp2Stream, trailers: Trailers): void {
  if (isClosed(downstream)) return;
  downstream.on('wantTrailers', () => {
    try {
      downstream.sendTrailers(trailers);
    } catch {
      // What Node does not send on costs the call, and not all the others.
      downstream.close(NGHTTP2_INTERNAL_ERROR);
    }
    closeWhenSent(downstream);
  });
  downstream.end();
}

/**
 * A caller that has not sent all of its call yet is asked to stop (RFC 9113, section 8.1), behind
 * the end of the answer.
 */
export function closeWhenSent(downstream: ServerHttp2Stream): void {
  if (downstream.readableEnded) return;
  const close = (): void => {
    if (downstream.readableEnded || isClosed(downstream)) return;
    // What is queued of a stream goes with it, and a socket that is full leaves even an answer's
    // head in the queue.
    if ((downstream.session?.state.outboundQueueSize ?? 0) > 0) setTimeout(close, QUEUE_POLL_MS);
    else downstream.close(NGHTTP2_NO_ERROR);
  };
  // Node asks for trailers in an immediate of its own, which was asked for before, and sends them
  // in the next turn of the event loop. No later: until it is closed, a stream counts against the
  // limit of the connection.
  setImmediate(() => setImmediate(close));
}

/**
 * What is HTTP and no gRPC gets an answer of HTTP (grpc/doc/PROTOCOL-HTTP2.md); undefined: it is
 * gRPC.
 */
export function faultOfRequest({ method, contentType }: CallHead): HttpError | undefined {
  if (method !== 'POST') {
    const message = 'This port accepts gRPC calls, which are POST requests; send REST requests to the HTTP port';
    return serverError('METHOD_NOT_ALLOWED', { message, headers: { allow: 'POST' } });
  }
  if (isGrpc(contentType)) return undefined;
  const message =
    'This port accepts calls of the content type application/grpc, not gRPC-Web or JSON; send REST requests to the HTTP port';
  return serverError('UNSUPPORTED_TYPE', { message });
}

interface RefusedRequest {
  readonly method: string;
  /** Go with the answer. */
  readonly added: Readonly<Record<string, string>>;
}

/** Refuses what is HTTP and no gRPC. */
export function refuseRequest(stream: ServerHttp2Stream, error: HttpError, { method, added }: RefusedRequest): void {
  if (isClosed(stream)) return;
  stream.resume();
  const body = Buffer.from(JSON.stringify(codedErrorBody(error)));
  stream.respond({
    ':status': error.statusCode,
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
    ...added,
    ...error.headers,
  });
  stream.end(method === 'HEAD' ? undefined : body);
  closeWhenSent(stream);
}
