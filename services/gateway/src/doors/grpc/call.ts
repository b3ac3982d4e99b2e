import { constants, type ServerHttp2Stream } from 'node:http2';
import { type GrpcStatus, grpcStatus, grpcStatusOfHttp } from '@rollcall/platform/grpc/status.ts';
import type { Link } from '@rollcall/platform/linked-list.ts';
import type { ClientStream, StreamEnd, StreamHandler } from '../../http2/client-stream.ts';
import { closeWhenSent, endWithTrailers, isClosed, refuse } from './answer.ts';
import type { Attempt } from './attempts.ts';
import type { CallMemory, HeldCall } from './call-memory.ts';
import { isGrpc, readTrailers, responseHead } from './headers.ts';
import { Refusal, refusalOf, type Trailers } from './refusal.ts';

/** As much of a call is kept until its answer begins, to be sent again where a backend did not take it. */
const REPLAY_MAX_BYTES = 64 * 1024;
/** A backend that is restarted gracefully refuses a call once; the next connection is one to its successor. */
const MAX_TRIES = 3;
/** A piece is copied that is so small a share of the memory it is in. */
const SMALL_SHARE = 4;
const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_NO_ERROR } = constants;

/** What became of a call. Undefined as status: its caller gave it up. */
type CallEnd = (status: GrpcStatus | undefined) => void;

export interface ForwardedCall {
  /** Whose it is. */
  readonly subject: string;
  readonly downstream: ServerHttp2Stream;
  /** Begins it at the backend; called again where the backend did not take it. @throws Refusal. */
  readonly open: () => Attempt;
  /** Goes with the answer. */
  readonly addedHeaders: Readonly<Record<string, string>>;
  readonly memory: CallMemory;
  readonly onEnd: CallEnd;
}

/** A call under way. */
export interface OpenCall extends HeldCall {
  /** Ends it at both sides. Nothing happens when it is over. */
  fail(refusal: Refusal): void;
  /** To be told that the stream of its caller is closed: the caller has ended it, or it is over. */
  closed(): void;
  /** Ends it at both sides without waiting for its caller to read what is there. Nothing happens when it is over. */
  cutOff(): void;
  /** What is kept of it at the backend's side. */
  unreadBytes(): number;
  /** How much of its answer was given to the stream of its caller, which may keep it. */
  readonly answeredBytes: number;
  /** Whether its backend has ended its answer, which nobody has cut short. */
  readonly isAnswered: boolean;
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
  #attempt: Attempt | undefined;
  #upstream: ClientStream | undefined;
  #over = false;
  #hasHead = false;
  #tries = 0;
  /** What was sent of it; undefined once it cannot be made again. */
  #replay: Buffer[] | undefined = [];
  #replayBytes = 0;
  #heldCall: Link<HeldCall> | undefined;
  #heldAnswer: Link<HeldCall> | undefined;
  #sentAll = false;
  #answeredBytes = 0;
  #isAnswered = false;

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
    this.#begin();
  }

  closed(): void {
    if (this.#over) return;
    this.#finish(undefined);
    this.#attempt?.abandon();
  }

  fail(refusal: Refusal): void {
    if (this.#over) return;
    const { downstream, addedHeaders } = this.#call;
    if (isClosed(downstream)) return this.closed();
    this.#finish(refusal.status);
    this.#attempt?.abandon();
    if (downstream.headersSent) endWithTrailers(downstream, refusal.trailers());
    else refuse(downstream, refusal, addedHeaders);
  }

  cutOff(): void {
    if (this.#over) return;
    const { downstream } = this.#call;
    if (isClosed(downstream)) return this.closed();
    const refusal = new Refusal(grpcStatus.RESOURCE_EXHAUSTED, 'What was sent is not read');
    if (!downstream.headersSent) return this.fail(refusal);
    this.#finish(refusal.status);
    this.#attempt?.abandon();
    // Which says the same; trailers would wait behind what is not read.
    downstream.close(NGHTTP2_ENHANCE_YOUR_CALM);
  }

  unreadBytes(): number {
    const upstream = this.#upstream;
    return upstream === undefined ? 0 : upstream.unreadBytes + upstream.unsentBytes;
  }

  get subject(): string {
    return this.#call.subject;
  }

  get answeredBytes(): number {
    return this.#answeredBytes;
  }

  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  #finish(status: GrpcStatus | undefined): void {
    this.#over = true;
    this.#forget();
    this.#heldCall?.unlink();
    this.#heldAnswer?.unlink();
    const { downstream, onEnd } = this.#call;
    // What is left of it goes nowhere; a stream that is not read to its end is never closed.
    if (downstream.isPaused()) downstream.resume();
    onEnd(status);
  }

  #send(chunk: Buffer): void {
    if (this.#over) return;
    this.#remember(chunk);
    const upstream = this.#upstream;
    if (upstream?.write(chunk) === false) this.#holdBack();
  }

  #remember(chunk: Buffer): void {
    if (this.#replay === undefined) return;
    const bytes = this.#replayBytes + chunk.length;
    if (bytes > REPLAY_MAX_BYTES || !this.#call.memory.keep(chunk.length)) return this.#forget();
    this.#replay.push(chunk);
    this.#replayBytes = bytes;
  }

  /** The call cannot be made again. */
  #forget(): void {
    this.#replay = undefined;
    this.#call.memory.drop(this.#replayBytes);
    this.#replayBytes = 0;
  }

  /** Reads no more of the call until the backend has taken what was sent. */
  #holdBack(): void {
    const { downstream, memory } = this.#call;
    if (this.#heldCall?.isLinked === true) return;
    downstream.pause();
    const link = memory.hold(this);
    if (!this.#over) {
      this.#heldCall = link;
      return;
    }
    // It was ended to make room for itself.
    link.unlink();
    downstream.resume();
  }

  #goOn(): void {
    this.#heldCall?.unlink();
    if (!this.#over) this.#call.downstream.resume();
  }

  /** Reads no more of the answer until the caller has taken what came of it. */
  #holdBackAnswer(upstream: ClientStream): void {
    const { downstream, memory } = this.#call;
    upstream.pause();
    const link = memory.hold(this);
    if (this.#over) {
      link.unlink();
      return;
    }
    this.#heldAnswer = link;
    downstream.once('drain', () => {
      link.unlink();
      upstream.resume();
    });
  }

  #begin(): void {
    const { downstream, open } = this.#call;
    this.#tries += 1;
    this.#upstream = undefined;
    this.#heldCall?.unlink();
    try {
      const attempt = open();
      this.#attempt = attempt;
      if (attempt.isReady()) return this.#attach(attempt);
      // Until then nothing is read of it, but for what is there.
      downstream.pause();
      attempt.whenReady((isMade) => (isMade ? this.#beginAt(attempt) : this.#notMade()));
    } catch (error) {
      this.#failedToBegin(error);
    }
  }

  #beginAt(attempt: Attempt): void {
    try {
      this.#attach(attempt);
    } catch (error) {
      this.#failedToBegin(error);
    }
  }

  #failedToBegin(error: unknown): void {
    this.#attempt = undefined;
    this.fail(refusalOf(error) ?? new Refusal(grpcStatus.INTERNAL, 'The call could not be passed on'));
  }

  /** Nothing was sent anywhere. */
  #notMade(): void {
    this.#attempt = undefined;
    if (this.#over) return;
    if (this.#tries < MAX_TRIES) this.#begin();
    else this.fail(lost(false));
  }

  #attach(attempt: Attempt): void {
    const stream = attempt.begin(this.#handlerOf(attempt));
    this.#upstream = stream;
    for (const chunk of this.#replay ?? []) stream.write(chunk);
    if (this.#sentAll) stream.end();
    else if (stream.needsDrain) this.#holdBack();
    // The attempt before may have had more than it took.
    else if (this.#call.downstream.isPaused()) this.#call.downstream.resume();
  }

  #handlerOf(attempt: Attempt): StreamHandler {
    return {
      onHead: (fields, isEnd) => {
        attempt.answered();
        this.#answer(fields, isEnd);
      },
      onData: (chunk) => this.#answerData(chunk),
      onEnd: (trailers) => this.#answered(trailers),
      onDrain: () => this.#goOn(),
      onClosed: (end) => {
        attempt.closed(end);
        this.#upstreamClosed(attempt, end);
      },
    };
  }

  #answer(fields: readonly string[], isEnd: boolean): void {
    if (this.#over) return;
    const { downstream, addedHeaders } = this.#call;
    if (isClosed(downstream)) return this.closed();
    this.#hasHead = true;
    this.#forget();
    const fault = faultOfAnswer(fields);
    if (fault !== undefined) return this.fail(fault);
    const head = responseHead(fields, addedHeaders);
    if (!isEnd) {
      downstream.respond(head, { waitForTrailers: true });
      return;
    }
    this.#isAnswered = true;
    this.#finish(statusOf(readTrailers(fields)));
    downstream.respond(head, { endStream: true });
    closeWhenSent(downstream);
    this.#stopSending();
  }

  #answerData(chunk: Buffer): void {
    const upstream = this.#upstream;
    if (this.#over || upstream === undefined) return;
    this.#answeredBytes += chunk.length;
    const { downstream } = this.#call;
    // What has to wait does not keep all that was read with it.
    const isTaken = downstream.write(downstream.writableLength > 0 ? ofItsOwn(chunk) : chunk);
    if (!isTaken) this.#holdBackAnswer(upstream);
  }

  #answered(fields: readonly string[] | undefined): void {
    if (this.#over) return;
    if (fields === undefined) {
      this.fail(new Refusal(grpcStatus.INTERNAL, 'The service ended the call without a status'));
      return;
    }
    const trailers = readTrailers(fields);
    this.#isAnswered = true;
    this.#finish(statusOf(trailers));
    endWithTrailers(this.#call.downstream, trailers);
    this.#stopSending();
  }

  /** A backend may end a call that has not come in full, or has not been sent in full. */
  #stopSending(): void {
    if (this.#upstream?.isSentInFull === false) this.#attempt?.abandon();
  }

  #upstreamClosed(attempt: Attempt, { cause, code, mayBeTaken }: StreamEnd): void {
    if (this.#over || attempt !== this.#attempt) return;
    const canRepeat = !this.#hasHead && this.#replay !== undefined && this.#tries < MAX_TRIES;
    if (canRepeat && !mayBeTaken) this.#begin();
    else this.fail(cause === 'lost' ? lost(mayBeTaken) : refusalOfReset(code));
  }
}

function ofItsOwn(chunk: Buffer): Buffer {
  if (chunk.length * SMALL_SHARE > chunk.buffer.byteLength) return chunk;
  const own = Buffer.allocUnsafeSlow(chunk.length);
  chunk.copy(own);
  return own;
}

function statusOf(trailers: Trailers): GrpcStatus {
  const status = trailers['grpc-status'];
  return (typeof status === 'string' ? STATUSES.get(status) : undefined) ?? grpcStatus.UNKNOWN;
}

const STATUSES: ReadonlyMap<string, GrpcStatus> = new Map(
  Object.values(grpcStatus).map((code) => [String(code), code]),
);

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

/** @param mayBeTaken whether the backend may have looked at the call: who repeats it may have it done twice. */
function lost(mayBeTaken: boolean): Refusal {
  const message = mayBeTaken ? 'The connection to the service was lost' : 'The service could not be reached';
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
      return new Refusal(
        grpcStatus.RESOURCE_EXHAUSTED,
        'The service has no room for the call, or answered with too much metadata',
      );
    case constants.NGHTTP2_INADEQUATE_SECURITY:
      return new Refusal(grpcStatus.PERMISSION_DENIED, 'The service does not take calls over such a connection');
    default:
      return new Refusal(grpcStatus.INTERNAL, 'The service reset the call');
  }
}
