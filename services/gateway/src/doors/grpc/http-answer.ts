import { codedErrorBody, type HttpError, serverError } from '@rollcall/platform/http/errors.ts';
import { closeWhenSent, isClosed } from './answer.ts';
import { type CallHead, isGrpc } from './headers.ts';
import { answerHeaders, type KnownCall } from './known-call.ts';

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

/** Refuses what is HTTP and no gRPC. */
export function refuseRequest(known: KnownCall, error: HttpError): void {
  const { stream, head } = known;
  if (isClosed(stream)) return;
  stream.resume();
  const body = Buffer.from(JSON.stringify(codedErrorBody(error)));
  stream.respond({
    ':status': error.statusCode,
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
    ...answerHeaders(known),
    ...error.headers,
  });
  stream.end(head.method === 'HEAD' ? undefined : body);
  closeWhenSent(stream);
}
