import type { ServerHttp2Stream } from 'node:http2';
import type { Clock } from '@rollcall/platform/clock.ts';
import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { endWithTrailers, refuse } from './answer.ts';
import type { CallHead } from './headers.ts';
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
  /** To be called from time to time: ends old watches. */
  endOld(): void;
}

export interface OwnHealthLimits {
  /** Anyone may watch, so nobody gets all places. */
  readonly watchesPerConnection: number;
  readonly watchMaxAgeMs: number;
}

const REQUEST_MAX_BYTES = 1024;
const WATCHES_MAX = 1000;
const HEAD = { ':status': 200, 'content-type': 'application/grpc' };

type Serving = 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';
const NUMBER_OF: Record<Serving, number> = { SERVING: 1, NOT_SERVING: 2, SERVICE_UNKNOWN: 3 };

export function createOwnHealth({ watchesPerConnection, watchMaxAgeMs }: OwnHealthLimits, clock: Clock): OwnHealth {
  /** With when they began. */
  const watches = new Map<ServerHttp2Stream, number>();
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
    const { session } = stream;
    const most = watches.size >= WATCHES_MAX ? WATCHES_MAX : watchesPerConnection;
    const open = most === WATCHES_MAX ? watches.size : countOf(watches.keys(), session);
    if (open >= most) return refuse(stream, new Refusal(grpcStatus.RESOURCE_EXHAUSTED, `${most} watches are open`));
    stream.respond(HEAD, { waitForTrailers: true });
    stream.write(healthMessage(service === '' ? serving : 'SERVICE_UNKNOWN'));
    watches.set(stream, clock.monotonicMs());
    stream.once('close', () => watches.delete(stream));
  }

  return {
    answer(stream, method) {
      if (method !== 'Check' && method !== 'Watch') {
        return refuse(stream, new Refusal(grpcStatus.UNIMPLEMENTED, `${HEALTH_SERVICE} has no method ${method}`));
      }
      readRequest(stream, (service) => {
        if (service === undefined)
          refuse(stream, new Refusal(grpcStatus.INVALID_ARGUMENT, 'That is no HealthCheckRequest'));
        else if (method === 'Check') check(stream, service);
        else watch(stream, service);
      });
    },
    stop() {
      serving = 'NOT_SERVING';
      for (const stream of watches.keys()) stream.write(healthMessage(serving));
    },
    endWatches() {
      isOver = true;
      for (const stream of watches.keys()) endWithTrailers(stream, stopping().trailers());
      watches.clear();
    },
    endOld() {
      const nowMs = clock.monotonicMs();
      for (const [stream, sinceMs] of watches) {
        // In the order in which they came.
        if (nowMs - sinceMs < watchMaxAgeMs) return;
        watches.delete(stream);
        endWithTrailers(stream, new Refusal(grpcStatus.UNAVAILABLE, 'The watch is old; watch again').trailers());
      }
    },
  };
}

function stopping(): Refusal {
  return new Refusal(grpcStatus.UNAVAILABLE, 'The gateway is stopping');
}

function countOf(streams: Iterable<ServerHttp2Stream>, session: ServerHttp2Stream['session']): number {
  let count = 0;
  for (const stream of streams) if (stream.session === session) count += 1;
  return count;
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
