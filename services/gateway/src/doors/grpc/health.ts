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
  /** Says NOT_SERVING from now on, also to watchers. */
  stop(): void;
  /** Ends the watches, and accepts no more. */
  endWatches(): void;
}

const REQUEST_MAX_BYTES = 1024;
const WATCHES_MAX = 1000;
/** Of all questions, watches included. */
const QUESTIONS_MAX = 10_000;
const HEAD = { ':status': 200, 'content-type': 'application/grpc' };

type Serving = 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';
const NUMBER_OF: Record<Serving, number> = { SERVING: 1, NOT_SERVING: 2, SERVICE_UNKNOWN: 3 };

export function createOwnHealth({ watchesPerConnection, lingerMs }: GrpcLimits): OwnHealth {
  const watches = new Set<ServerHttp2Stream>();
  let questions = 0;
  let serving: Serving = 'SERVING';
  let isOver = false;

  function check(stream: ServerHttp2Stream, service: string): void {
    if (service !== '')
      return refuse(stream, new Refusal(grpcStatus.NOT_FOUND, `Health of '${service}' is not known here`));
    stream.respond(HEAD, { waitForTrailers: true });
    stream.write(healthMessage(serving));
    endWithTrailers(stream, { 'grpc-status': '0' });
  }

  function watch(stream: ServerHttp2Stream, service: string): void {
    if (isOver) return refuse(stream, stopping());
    const ofConnection = watches.values().filter(({ session }) => session === stream.session);
    if (watches.size >= WATCHES_MAX || [...ofConnection].length >= watchesPerConnection)
      return refuse(stream, new Refusal(grpcStatus.RESOURCE_EXHAUSTED, 'Too many watches are open'));
    stream.respond(HEAD, { waitForTrailers: true });
    stream.write(healthMessage(service === '' ? serving : 'SERVICE_UNKNOWN'));
    watches.add(stream);
  }

  return {
    answer(stream, method) {
      if (method !== 'Check' && method !== 'Watch')
        return refuse(stream, new Refusal(grpcStatus.UNIMPLEMENTED, `${HEALTH_SERVICE} has no method ${method}`));
      if (questions >= QUESTIONS_MAX)
        return refuse(stream, new Refusal(grpcStatus.UNAVAILABLE, 'Too many questions after health are open'));
      questions += 1;
      const overdue = setTimeout(() => {
        if (!watches.has(stream)) stream.close(constants.NGHTTP2_CANCEL);
      }, lingerMs).unref();
      stream.once('close', () => {
        questions -= 1;
        watches.delete(stream);
        clearTimeout(overdue);
      });
      readRequest(stream, (service) => {
        if (service === undefined)
          refuse(stream, new Refusal(grpcStatus.INVALID_ARGUMENT, 'That is no HealthCheckRequest'));
        else if (method === 'Check') check(stream, service);
        else watch(stream, service);
      });
    },
    stop() {
      serving = 'NOT_SERVING';
      for (const stream of watches) stream.write(healthMessage(serving));
    },
    endWatches() {
      isOver = true;
      for (const stream of watches) endWithTrailers(stream, stopping().trailers());
      watches.clear();
    },
  };
}

function stopping(): Refusal {
  return new Refusal(grpcStatus.UNAVAILABLE, 'The gateway is stopping');
}

/**
 * Reads the one message of a call.
 *
 * @param onService called with the name in it, or with undefined for anything else.
 */
function readRequest(stream: ServerHttp2Stream, onService: (service: string | undefined) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= REQUEST_MAX_BYTES) chunks.push(chunk);
  });
  stream.once('end', () => {
    if (stream.aborted) return;
    onService(bytes <= REQUEST_MAX_BYTES ? parseHealthRequest(Buffer.concat(chunks)) : undefined);
  });
}

/**
 * @param message with the five bytes before it: `HealthCheckRequest { string service = 1; }`,
 * uncompressed.
 * @returns the service's name.
 */
export function parseHealthRequest(message: Buffer): string | undefined {
  if (message.length < 5 || message[0] !== 0 || message.readUInt32BE(1) !== message.length - 5) return undefined;
  if (message.length === 5) return '';
  const length = message[6] ?? 0;
  // Names that fit into one byte of length; there is none longer to be known here.
  if (message[5] !== 0x0a || length > 0x7f || message.length !== 7 + length) return undefined;
  return message.toString('utf8', 7);
}

/** `HealthCheckResponse { ServingStatus status = 1; }` */
function healthMessage(serving: Serving): Buffer {
  return Buffer.from([0, 0, 0, 0, 2, 0x08, NUMBER_OF[serving]]);
}
