import { type ClientHttp2Stream, constants, type ServerHttp2Stream } from 'node:http2';
import { type GrpcStatus, grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { closeWhenSent, endWithTrailers, isClosed, refuse } from './answer.ts';
import type { Attempt } from './attempts.ts';
import { readTrailers, responseHead } from './headers.ts';
import { Refusal, refusalOf, type Trailers } from './refusal.ts';
import type { ReplayBudget } from './replay-budget.ts';
import { faultOfAnswer, lost, refusalOfReset, statusOf } from './service-status.ts';

/**
 * As much of a call is kept until its answer begins, to be sent again where a backend did not
 * accept it.
 */
const REPLAY_MAX_BYTES = 64 * 1024;
/**
 * A backend that is restarted gracefully refuses a call once; the next connection is one to its
 * successor.
 */
const MAX_TRIES = 3;
const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_FLAG_END_STREAM, NGHTTP2_NO_ERROR } = constants;

export interface ForwardedCall {
  readonly downstream: ServerHttp2Stream;
  /**
   * Begins it at the backend; called again where the backend did not accept it.
   *
   * @throws Refusal.
   */
  readonly open: () => Attempt;
  /** Goes with the answer. */
  readonly addedHeaders: Readonly<Record<string, string>>;
  readonly replayBudget: ReplayBudget;
  /** How it ended; undefined: its caller gave it up. */
  readonly onEnd: (status: GrpcStatus | undefined) => void;
}

/**
 * Passes a call on, bytes as they are. Neither side is read faster than the other reads, so what is
 * held of a call is bounded by the windows of HTTP/2, however long it is.
 *
 * ```
 * caller ── data, end ──> backend       caller resets   -> backend is reset (CANCEL)
 * caller <── head, data, trailers ── backend     backend resets, or is lost -> caller gets a status in trailers
 * ```
 */
export class Forwarding {
  readonly #call: ForwardedCall;
  #attempt: Attempt | undefined;
  #upstream: ClientHttp2Stream | undefined;
  #isOver = false;
  #hasHead = false;
  #tries = 0;
  /** What was sent of it; undefined once it cannot be made again. */
  #replay: Buffer[] | undefined = [];
  #replayBytes = 0;
  #hasEnded = false;
  #trailers: Trailers | undefined;
  /** How much of its answer was given to the stream of its caller, which may keep it. */
  answeredBytes = 0;
  /** Whether its backend has ended its answer, which nobody has cut short. */
  isAnswered = false;

  constructor(call: ForwardedCall) {
    this.#call = call;
  }

  begin(): void {
    const { downstream } = this.#call;
    downstream.on('data', (chunk: Buffer) => this.#send(chunk));
    // A call without a message may have ended while it was admitted, and emits nothing again.
    if (downstream.readableEnded) this.#end();
    else downstream.once('end', () => this.#end());
    this.#try();
  }

  /**
   * To be called when the stream of its caller is closed: the caller has ended it, or it is over.
   */
  closed(): void {
    if (this.#isOver) return;
    this.#finish(undefined);
    this.#attempt?.abandon();
  }

  /** Ends it at both sides. Nothing happens when it is over. */
  fail(refusal: Refusal): void {
    if (this.#isOver) return;
    const { downstream, addedHeaders } = this.#call;
    if (isClosed(downstream)) return this.closed();
    this.#finish(refusal.status);
    this.#attempt?.abandon();
    if (downstream.headersSent) endWithTrailers(downstream, refusal.trailers());
    else refuse(downstream, refusal, addedHeaders);
  }

  /**
   * Ends it at both sides without waiting for its caller to read the rest. Nothing happens when it
   * is over.
   */
  cutOff(): void {
    if (this.#isOver) return;
    const { downstream } = this.#call;
    const refusal = new Refusal(grpcStatus.RESOURCE_EXHAUSTED, 'What was sent is not read');
    if (!downstream.headersSent || isClosed(downstream)) return this.fail(refusal);
    this.#finish(refusal.status);
    this.#attempt?.abandon();
    // Which says the same; trailers would wait behind what is not read.
    downstream.close(NGHTTP2_ENHANCE_YOUR_CALM);
  }

  /** What is kept of it at the backend's side. */
  get unreadBytes(): number {
    const upstream = this.#upstream;
    return upstream === undefined ? 0 : upstream.readableLength + upstream.writableLength;
  }

  #finish(status: GrpcStatus | undefined): void {
    this.#isOver = true;
    this.#forget();
    const { downstream, onEnd } = this.#call;
    // What is left of it goes nowhere; a stream that is not read to its end is never closed.
    if (downstream.isPaused()) downstream.resume();
    onEnd(status);
  }

  #send(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#remember(chunk);
    const upstream = this.#upstream;
    if (upstream?.write(chunk) === false) this.#pauseCaller(upstream);
  }

  #end(): void {
    const { downstream } = this.#call;
    // The end of a call that its caller has reset is none.
    if (this.#isOver || downstream.aborted || downstream.rstCode !== NGHTTP2_NO_ERROR) return;
    this.#hasEnded = true;
    this.#upstream?.end();
  }

  #remember(chunk: Buffer): void {
    if (this.#replay === undefined) return;
    const bytes = this.#replayBytes + chunk.length;
    if (bytes > REPLAY_MAX_BYTES || !this.#call.replayBudget.take(chunk.length)) return this.#forget();
    this.#replay.push(chunk);
    this.#replayBytes = bytes;
  }

  /** The call cannot be made again. */
  #forget(): void {
    this.#replay = undefined;
    this.#call.replayBudget.giveBack(this.#replayBytes);
    this.#replayBytes = 0;
  }

  /** Reads no more of the call until the backend has read what was sent. */
  #pauseCaller(upstream: ClientHttp2Stream): void {
    const { downstream } = this.#call;
    downstream.pause();
    upstream.once('drain', () => downstream.resume());
  }

  #try(): void {
    const { downstream, open } = this.#call;
    this.#tries += 1;
    this.#upstream = undefined;
    this.#attempt = undefined;
    try {
      const attempt = open();
      this.#attempt = attempt;
      if (attempt.isReady()) return this.#attach(attempt);
      // Until then nothing more is read of it.
      downstream.pause();
      void attempt.whenReady().then((isReady) => this.#connected(attempt, isReady));
    } catch (error) {
      this.#failedToBegin(error);
    }
  }

  #connected(attempt: Attempt, isReady: boolean): void {
    if (this.#isOver) return;
    if (isReady) {
      try {
        return this.#attach(attempt);
      } catch (error) {
        return this.#failedToBegin(error);
      }
    }
    if (this.#tries < MAX_TRIES) this.#try();
    else this.fail(lost(false));
  }

  #failedToBegin(error: unknown): void {
    this.#attempt = undefined;
    this.fail(refusalOf(error) ?? new Refusal(grpcStatus.INTERNAL, 'The call could not be passed on'));
  }

  #attach(attempt: Attempt): void {
    const { downstream } = this.#call;
    const stream = attempt.begin();
    this.#upstream = stream;
    stream.on('response', (_headers, flags, raw) => {
      attempt.answered();
      this.#answer(stream, flags, raw);
    });
    stream.on('close', () => {
      attempt.closed();
      this.#upstreamClosed(attempt, stream);
    });
    for (const chunk of this.#replay ?? []) stream.write(chunk);
    if (this.#hasEnded) stream.end();
    else if (stream.writableNeedDrain) this.#pauseCaller(stream);
    // The attempt before may have been sent more than it read.
    else if (downstream.isPaused()) downstream.resume();
  }

  #answer(stream: ClientHttp2Stream, flags: number, raw: readonly string[]): void {
    if (this.#isOver) return;
    const { downstream, addedHeaders } = this.#call;
    if (isClosed(downstream)) return this.closed();
    this.#hasHead = true;
    this.#forget();
    const fault = faultOfAnswer(raw);
    if (fault !== undefined) return this.fail(fault);
    const head = responseHead(raw, addedHeaders);
    if ((flags & NGHTTP2_FLAG_END_STREAM) !== 0) {
      this.#answered(stream, readTrailers(raw));
      downstream.respond(head, { endStream: true });
      closeWhenSent(downstream);
      return;
    }
    downstream.respond(head, { waitForTrailers: true });
    stream.on('trailers', (_headers, _flags, rawTrailers) => {
      this.#trailers = readTrailers(rawTrailers);
    });
    stream.on('data', (chunk: Buffer) => {
      if (this.#isOver) return;
      this.answeredBytes += chunk.length;
      if (downstream.write(chunk)) return;
      stream.pause();
      downstream.once('drain', () => stream.resume());
    });
    stream.on('end', () => this.#upstreamEnded(stream));
  }

  #upstreamEnded(stream: ClientHttp2Stream): void {
    const trailers = this.#trailers;
    // Node emits an end after a reset, too; `close` deals with it.
    if (this.#isOver || (trailers === undefined && stream.rstCode !== NGHTTP2_NO_ERROR)) return;
    if (trailers === undefined) {
      this.fail(new Refusal(grpcStatus.INTERNAL, 'The service ended the call without a status'));
      return;
    }
    this.#answered(stream, trailers);
    endWithTrailers(this.#call.downstream, trailers);
  }

  #answered(stream: ClientHttp2Stream, trailers: Trailers): void {
    this.isAnswered = true;
    this.#finish(statusOf(trailers));
    // A backend may end a call that has not come in full, or has not been sent in full.
    if (!stream.writableFinished) this.#attempt?.abandon();
  }

  #upstreamClosed(attempt: Attempt, stream: ClientHttp2Stream): void {
    if (this.#isOver || attempt !== this.#attempt) return;
    const mayBeAccepted = this.#hasHead || attempt.mayBeAccepted();
    if (!mayBeAccepted && this.#replay !== undefined && this.#tries < MAX_TRIES) this.#try();
    else this.fail(attempt.wasLost() ? lost(mayBeAccepted) : refusalOfReset(stream.rstCode ?? NGHTTP2_NO_ERROR));
  }
}
