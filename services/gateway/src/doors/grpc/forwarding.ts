import { type ClientHttp2Stream, constants, type ServerHttp2Stream } from 'node:http2';
import { type GrpcStatus, grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { closeWhenSent, endWithTrailers, isClosed, refuse } from './answer.ts';
import type { Attempt } from './attempts.ts';
import { readTrailers, responseHead } from './headers.ts';
import { Refusal, refusalOf, type Trailers } from './refusal.ts';
import { faultOfAnswer, faultOfEnd, lost, refusalOfReset, statusOf } from './service-status.ts';

/**
 * As much of a call is kept until its answer begins, to be sent again where a backend did not
 * accept it: 16 MiB of all calls that one subject may have under way.
 */
const REPLAY_MAX_BYTES = 16 * 1024;
/**
 * A backend that is restarted gracefully refuses a call once; the next connection is one to its
 * successor.
 */
const MAX_TRIES = 3;
const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_FLAG_END_STREAM, NGHTTP2_NO_ERROR } = constants;

interface ForwardingDeps {
  /** Go with the answer. */
  readonly answerHeaders: Readonly<Record<string, string>>;
  /**
   * Begins it at the backend; called again where the backend did not accept it.
   *
   * @throws Refusal.
   */
  readonly open: () => Attempt;
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
  readonly #downstream: ServerHttp2Stream;
  readonly #deps: ForwardingDeps;
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

  constructor(downstream: ServerHttp2Stream, deps: ForwardingDeps) {
    this.#downstream = downstream;
    this.#deps = deps;
  }

  begin(): void {
    const downstream = this.#downstream;
    downstream.on('data', (chunk: Buffer) => this.#send(chunk));
    // A call without a message may have ended while it was admitted, and emits nothing again.
    if (downstream.readableEnded) this.#end();
    else downstream.once('end', () => this.#end());
    void this.#try();
  }

  /**
   * To be called when the stream of its caller is closed: the caller has ended it, or it is over.
   */
  closed(): void {
    if (!this.#isOver) this.#giveUp(undefined);
  }

  /** Ends it at both sides. Nothing happens when it is over. */
  fail(refusal: Refusal): void {
    if (this.#isOver) return;
    const downstream = this.#downstream;
    if (isClosed(downstream)) return this.closed();
    this.#giveUp(refusal.status);
    if (downstream.headersSent) endWithTrailers(downstream, refusal.trailers());
    else refuse(downstream, refusal, this.#deps.answerHeaders);
  }

  /**
   * Ends it at both sides without waiting for its caller to read the rest. Nothing happens when it
   * is over.
   */
  cutOff(): void {
    const refusal = new Refusal(grpcStatus.RESOURCE_EXHAUSTED, 'What was sent is not read');
    const downstream = this.#downstream;
    if (this.#isOver || !downstream.headersSent || isClosed(downstream)) return this.fail(refusal);
    this.#giveUp(refusal.status);
    // Which says the same; trailers would wait behind what is not read.
    downstream.close(NGHTTP2_ENHANCE_YOUR_CALM);
  }

  #giveUp(status: GrpcStatus | undefined): void {
    this.#finish(status);
    this.#attempt?.abandon();
  }

  #finish(status: GrpcStatus | undefined): void {
    this.#isOver = true;
    this.#replay = undefined;
    // What is left of it goes nowhere; a stream that is not read to its end is never closed.
    if (this.#downstream.isPaused()) this.#downstream.resume();
    this.#deps.onEnd(status);
  }

  #send(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#remember(chunk);
    const upstream = this.#upstream;
    if (upstream?.write(chunk) === false) this.#pauseCaller(upstream);
  }

  #end(): void {
    const downstream = this.#downstream;
    // The end of a call that its caller has reset is none.
    if (this.#isOver || downstream.aborted || downstream.rstCode !== NGHTTP2_NO_ERROR) return;
    this.#hasEnded = true;
    this.#upstream?.end();
  }

  #remember(chunk: Buffer): void {
    this.#replayBytes += chunk.length;
    if (this.#replayBytes > REPLAY_MAX_BYTES) this.#replay = undefined;
    else this.#replay?.push(chunk);
  }

  /** Reads no more of the call until the backend has read what was sent. */
  #pauseCaller(upstream: ClientHttp2Stream): void {
    const downstream = this.#downstream;
    downstream.pause();
    upstream.once('drain', () => downstream.resume());
  }

  async #try(): Promise<void> {
    const downstream = this.#downstream;
    this.#tries += 1;
    this.#upstream = undefined;
    this.#attempt = undefined;
    try {
      const attempt = this.#deps.open();
      this.#attempt = attempt;
      // Until it begins nothing more is read of the call.
      if (this.#tries > 1 || !attempt.isReady()) downstream.pause();
      const stream = await attempt.begin();
      if (this.#isOver) return;
      if (stream !== undefined) this.#attach(attempt, stream);
      else if (this.#tries < MAX_TRIES) await this.#try();
      else this.fail(lost(false));
    } catch (error) {
      this.fail(refusalOf(error) ?? new Refusal(grpcStatus.INTERNAL, 'The call could not be passed on'));
    }
  }

  #attach(attempt: Attempt, stream: ClientHttp2Stream): void {
    const downstream = this.#downstream;
    this.#upstream = stream;
    stream.on('response', (head, flags, raw) => {
      const fault = faultOfAnswer(head);
      if (fault === undefined) this.#answer(stream, flags, raw);
      else this.fail(fault);
    });
    stream.on('close', () => this.#upstreamClosed(attempt, stream));
    for (const chunk of this.#replay ?? []) stream.write(chunk);
    if (this.#hasEnded) stream.end();
    else if (stream.writableNeedDrain) this.#pauseCaller(stream);
    // The attempt before may have been sent more than it read.
    else if (downstream.isPaused()) downstream.resume();
  }

  #answer(stream: ClientHttp2Stream, flags: number, raw: readonly string[]): void {
    if (this.#isOver) return;
    const downstream = this.#downstream;
    if (isClosed(downstream)) return this.closed();
    this.#hasHead = true;
    this.#replay = undefined;
    const head = responseHead(raw, this.#deps.answerHeaders);
    if ((flags & NGHTTP2_FLAG_END_STREAM) !== 0) {
      const trailers = readTrailers(raw);
      const fault = faultOfEnd(trailers);
      if (fault !== undefined) return this.fail(fault);
      this.#answered(stream, trailers);
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
    // Node emits an end after a reset, too; `close` deals with it.
    if (this.#isOver || (this.#trailers === undefined && stream.rstCode !== NGHTTP2_NO_ERROR)) return;
    const trailers = this.#trailers ?? {};
    const fault = faultOfEnd(trailers);
    if (fault !== undefined) return this.fail(fault);
    this.#answered(stream, trailers);
    endWithTrailers(this.#downstream, trailers);
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
    if (!mayBeAccepted && this.#replay !== undefined && this.#tries < MAX_TRIES) void this.#try();
    else this.fail(attempt.wasLost() ? lost(mayBeAccepted) : refusalOfReset(stream.rstCode ?? NGHTTP2_NO_ERROR));
  }
}
