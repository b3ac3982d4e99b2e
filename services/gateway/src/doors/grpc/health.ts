import { constants, type ServerHttp2Stream } from 'node:http2';
import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { endWithTrailers, refuse } from './answer.ts';
import type { CallHead } from './headers.ts';
import type { GrpcLimits } from './limits.ts';
import { Refusal } from './refusal.ts';

/** The standard health service (grpc/doc/health-checking.md). */
const HEALTH_SERVICE = 'grpc.health.v1.Health';

/**
 * Whether a call asks for the gateway's own health, and not for that of a service which it names.
 */
export function isOwnHealth({ override, path }: CallHead): boolean {
  return override === undefined && path.startsWith(`/${HEALTH_SERVICE}/`);
}

/** The gateway's own health, for callers that ask for the service with the empty name. */
export interface OwnHealth {
  /** Answers a call of the service. */
  answer(stream: ServerHttp2Stream, method: string): void;
  /** Says NOT_SERVING from now on. */
  stop(): void;
}

const REQUEST_MAX_BYTES = 1024;
const QUESTIONS_MAX = 10_000;
const HEAD = { ':status': 200, 'content-type': 'application/grpc' };
/** `HealthCheckResponse { ServingStatus status = 1; }`, with the five bytes before it. */
const SERVING = Buffer.from([0, 0, 0, 0, 2, 0x08, 1]);
const NOT_SERVING = Buffer.from([0, 0, 0, 0, 2, 0x08, 2]);

/** @param lingerMs how long one may ask. */
export function createOwnHealth({ lingerMs }: Pick<GrpcLimits, 'lingerMs'>): OwnHealth {
  let questions = 0;
  let answer = SERVING;

  function check(stream: ServerHttp2Stream, request: Buffer): void {
    const refusal = refusalOfRequest(request);
    if (refusal !== undefined) return refuse(stream, refusal);
    stream.respond(HEAD, { waitForTrailers: true });
    stream.write(answer);
    endWithTrailers(stream, { 'grpc-status': '0' });
  }

  return {
    answer(stream, method) {
      // A client that watches takes the server for healthy then (grpc/doc/health-checking.md).
      if (method !== 'Check')
        return refuse(stream, new Refusal(grpcStatus.UNIMPLEMENTED, `${HEALTH_SERVICE} has only Check here`));
      if (questions >= QUESTIONS_MAX)
        return refuse(stream, new Refusal(grpcStatus.UNAVAILABLE, 'Too many questions after health are open'));
      questions += 1;
      const overdue = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), lingerMs).unref();
      stream.once('close', () => {
        questions -= 1;
        clearTimeout(overdue);
      });
      const chunks: Buffer[] = [];
      let bytes = 0;
      stream.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= REQUEST_MAX_BYTES) chunks.push(chunk);
      });
      stream.once('end', () => {
        if (!stream.aborted) check(stream, Buffer.concat(chunks));
      });
    },
    stop() {
      answer = NOT_SERVING;
    },
  };
}

/** @param request `HealthCheckRequest { string service = 1; }`, with the five bytes before it. */
function refusalOfRequest(request: Buffer): Refusal | undefined {
  if (request.length < 5 || request[0] !== 0 || request.readUInt32BE(1) !== request.length - 5)
    return new Refusal(grpcStatus.INVALID_ARGUMENT, 'That is no HealthCheckRequest');
  // The empty name, which is not sent, is the gateway's.
  if (request.length === 5) return undefined;
  return new Refusal(grpcStatus.NOT_FOUND, 'The metadata rollcall-service names the service whose health is asked for');
}
