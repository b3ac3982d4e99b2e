import { type ClientHttp2Stream, constants, type ServerHttp2Stream } from 'node:http2';
import { type GrpcStatus, grpcStatus, grpcStatusOfHttp } from '@rollcall/platform/grpc/status.ts';
import { isGrpc, readTrailers, responseHead } from './headers.ts';
import { Refusal, type Trailers } from './refusal.ts';
import type { UpstreamCall } from './upstreams.ts';

/** As much of a call is kept until its answer begins, to be sent again where a backend did not take it. */
const REPLAY_MAX_BYTES = 64 * 1024;
/** A backend that is restarted gracefully refuses a call once; the next connection is one to its successor. */
const MAX_TRIES = 3;
/** How long a caller that reads nothing may keep the end of its call waiting. */
const LINGER_MS = 5000;
const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR, NGHTTP2_FLAG_END_STREAM } = constants;

/** What became of a call. Undefined as status: its caller gave it up. */
type CallEnd = (status: GrpcStatus | undefined) => void;

export interface ForwardedCall {
  readonly downstream: ServerHttp2Stream;
  /** Begins it at the backend; called again where the backend did not take it. @throws Refusal. */
  readonly open: () => UpstreamCall;
  /** Goes with the answer. */
  readonly addedHeaders: Readonly<Record<string, string>>;
  readonly onEnd: CallEnd;
}

/** A call under way. */
export interface OpenCall {
  /** Ends it at both sides. Nothing happens when it is over. */
  fail(refusal: Refusal): void;
}

/**
 * Passes a call on, bytes as they are. Neither side is read faster than the other takes it, so what is held of a call is bounded by the
 * windows of HTTP/2, however long it is.
 *
 * ```
 * caller ── data, end ──> backend       caller resets   -> backend is reset (CANCEL)
 * caller <── head, data, trailers ── backend     backend resets, or is lost -> caller gets a status in trailers
 * ```
 */
export function forwardCall(call: ForwardedCall): OpenCall {
  const forwarding = new Forwarding(call);
  forwarding.begin();
  return forwarding;
}

class Forwarding implements OpenCall {
  readonly #call: ForwardedCall;
  #upstream: ClientHttp2Stream | undefined;
  #over = false;
  #answered = false;
  #tries = 0;
  /** What was sent of it; undefined once it cannot be made again. */
  #replay: Buffer[] | undefined = [];
  #replayBytes = 0;
  #sentAll = false;
  #trailers: Trailers | undefined;

  constructor(call: ForwardedCall) {
    this.#call = call;
  }

  begin(): void {
    const { downstream } = this.#call;
    downstream.on('data', (chunk: Buffer) => this.#send(chunk));
    downstream.on('end', () => {
      // The end of a call that its caller has reset is none.
      if (this.#over || downstream.aborted || downstream.rstCode !== NGHTTP2_NO_ERROR) return;
      this.#sentAll = true;
      this.#upstream?.end();
    });
    downstream.on('close', () => {
      if (this.#over) return;
      this.#finish(undefined);
      this.#upstream?.close(NGHTTP2_CANCEL);
    });
    this.#attempt();
  }

  fail(refusal: Refusal): void {
    if (this.#over) return;
    const { downstream } = this.#call;
    this.#finish(refusal.status);
    this.#upstream?.close(NGHTTP2_CANCEL);
    if (downstream.headersSent) endWithTrailers(downstream, refusal.trailers());
    else refuse(downstream, refusal);
  }

  #finish(status: GrpcStatus | undefined): void {
    this.#over = true;
    this.#replay = undefined;
    this.#call.onEnd(status);
  }

  #send(chunk: Buffer): void {
    if (this.#over) return;
    if (this.#replay !== undefined) {
      this.#replayBytes += chunk.length;
      if (this.#replayBytes <= REPLAY_MAX_BYTES) this.#replay.push(chunk);
      else this.#replay = undefined;
    }
    if (this.#upstream?.write(chunk) === false) this.#call.downstream.pause();
  }

  #attempt(): void {
    try {
      this.#attach(this.#call.open());
    } catch (error) {
      this.fail(error instanceof Refusal ? error : new Refusal(grpcStatus.INTERNAL, 'The call could not be passed on'));
    }
  }

  #attach(call: UpstreamCall): void {
    const { downstream } = this.#call;
    const { stream } = call;
    this.#tries += 1;
    this.#upstream = stream;
    stream.on('response', (_headers, flags, raw) => this.#answer(stream, flags, raw));
    stream.on('trailers', (_headers, _flags, raw) => {
      this.#trailers = readTrailers(raw);
    });
    stream.on('drain', () => downstream.resume());
    stream.on('close', () => this.#upstreamClosed(call));
    for (const chunk of this.#replay ?? []) stream.write(chunk);
    if (this.#sentAll) stream.end();
    else if (stream.writableNeedDrain) downstream.pause();
  }

  #answer(stream: ClientHttp2Stream, flags: number, raw: readonly string[]): void {
    if (this.#over) return;
    const { downstream, addedHeaders } = this.#call;
    this.#answered = true;
    this.#replay = undefined;
    const fault = faultOfAnswer(raw);
    if (fault !== undefined) return this.fail(fault);
    const head = responseHead(raw, addedHeaders);
    if ((flags & NGHTTP2_FLAG_END_STREAM) !== 0) {
      this.#finish(statusOf(readTrailers(raw)));
      downstream.respond(head, { endStream: true });
      closeWhenSent(downstream);
      return this.#stopSending(stream);
    }
    downstream.respond(head, { waitForTrailers: true });
    stream.on('data', (chunk: Buffer) => {
      if (!this.#over && !downstream.write(chunk)) stream.pause();
    });
    downstream.on('drain', () => stream.resume());
    stream.on('end', () => this.#upstreamEnded(stream));
  }

  #upstreamEnded(stream: ClientHttp2Stream): void {
    const trailers = this.#trailers;
    // A reset looks like an end, too; `close` deals with it.
    if (this.#over || (trailers === undefined && stream.rstCode !== NGHTTP2_NO_ERROR)) return;
    if (trailers === undefined) {
      this.fail(new Refusal(grpcStatus.INTERNAL, 'The service ended the call without a status'));
      return;
    }
    this.#finish(statusOf(trailers));
    endWithTrailers(this.#call.downstream, trailers);
    this.#stopSending(stream);
  }

  /** A backend may end a call that its caller has not sent in full. */
  #stopSending(stream: ClientHttp2Stream): void {
    if (!this.#sentAll) stream.close(NGHTTP2_CANCEL);
  }

  #upstreamClosed(call: UpstreamCall): void {
    if (this.#over || call.stream !== this.#upstream) return;
    const canRepeat = !this.#answered && this.#replay !== undefined && this.#tries < MAX_TRIES;
    if (canRepeat && call.wasNotTaken()) this.#attempt();
    else this.fail(call.wasLost() ? lost(this.#answered) : refusalOfReset(call.stream.rstCode));
  }
}

/** Answers a call with a status and nothing else. */
export function refuse(downstream: ServerHttp2Stream, refusal: Refusal): void {
  if (downstream.destroyed || downstream.closed) return;
  downstream.resume();
  downstream.respond(
    { ':status': 200, 'content-type': 'application/grpc', ...refusal.trailers() },
    { endStream: true },
  );
  closeWhenSent(downstream);
}

/** Ends an answer that has begun. */
export function endWithTrailers(downstream: ServerHttp2Stream, trailers: Trailers): void {
  if (downstream.destroyed || downstream.closed) return;
  downstream.once('wantTrailers', () => {
    downstream.sendTrailers(trailers);
    closeWhenSent(downstream);
  });
  downstream.end();
  const linger = setTimeout(() => downstream.close(NGHTTP2_CANCEL), LINGER_MS);
  downstream.once('close', () => clearTimeout(linger));
}

/** A caller that has not sent all of its call yet is told to stop (RFC 9113, section 8.1), behind the end of the answer. */
function closeWhenSent(downstream: ServerHttp2Stream): void {
  if (downstream.readableEnded) return;
  // Node sends trailers in an immediate of its own, which was asked for before.
  setImmediate(() => {
    if (!downstream.readableEnded) downstream.close(NGHTTP2_NO_ERROR);
  });
}

function statusOf(trailers: Trailers): GrpcStatus {
  const status = Number(trailers['grpc-status']);
  return STATUSES.find((known) => known === status) ?? grpcStatus.UNKNOWN;
}

const STATUSES = Object.values(grpcStatus);

/** An answer that is none of gRPC's; undefined: it is one. */
function faultOfAnswer(raw: readonly string[]): Refusal | undefined {
  const status = valueOf(raw, ':status');
  if (status !== '200') {
    return new Refusal(grpcStatusOfHttp(Number(status)), `The service answered with HTTP status ${status}`);
  }
  if (isGrpc(valueOf(raw, 'content-type'))) return undefined;
  return new Refusal(grpcStatus.UNKNOWN, 'The service answered with something that is no gRPC');
}

function valueOf(raw: readonly string[], name: string): string {
  for (let index = 0; index < raw.length; index += 2) if (raw[index] === name) return raw[index + 1] ?? '';
  return '';
}

function lost(answered: boolean): Refusal {
  const message = answered ? 'The connection to the service was lost' : 'The service could not be reached';
  return new Refusal(grpcStatus.UNAVAILABLE, message);
}

/** By the code of RST_STREAM (grpc/doc/PROTOCOL-HTTP2.md, "Errors"). */
function refusalOfReset(code: number): Refusal {
  switch (code) {
    case constants.NGHTTP2_REFUSED_STREAM:
      return new Refusal(grpcStatus.UNAVAILABLE, 'The service refused the call');
    case constants.NGHTTP2_CANCEL:
      return new Refusal(grpcStatus.CANCELLED, 'The service cancelled the call');
    case constants.NGHTTP2_ENHANCE_YOUR_CALM:
      return new Refusal(grpcStatus.RESOURCE_EXHAUSTED, 'The service has no room for the call');
    case constants.NGHTTP2_INADEQUATE_SECURITY:
      return new Refusal(grpcStatus.PERMISSION_DENIED, 'The service does not take calls over such a connection');
    default:
      return new Refusal(grpcStatus.INTERNAL, 'The service reset the call');
  }
}
