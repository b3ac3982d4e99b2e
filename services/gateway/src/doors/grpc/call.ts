import { constants, type ServerHttp2Stream } from 'node:http2';
import { type GrpcStatus, grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { requestIdOf } from '@rollcall/platform/http/request-id.ts';
import { rounded } from '../../access-log.ts';
import { admit, type Counted } from '../../admission/admission.ts';
import { bearerToken, unauthenticated } from '../../admission/bearer.ts';
import { answerTo, GatewayError } from '../../errors.ts';
import { traceIdFor } from '../trace-context.ts';
import { faultOfRequest, isClosed, refuse, refuseRequest } from './answer.ts';
import { attemptsAt, deadlineExceeded, type ForwardedCall } from './attempts.ts';
import { statusName } from './call-metrics.ts';
import { type CallSpan, startCallSpan } from './call-span.ts';
import { Forwarding } from './forwarding.ts';
import type { CallHead } from './headers.ts';
import { readCall } from './read-call.ts';
import { Refusal, refusalOf } from './refusal.ts';
import { routeCall } from './routing.ts';
import type { Serving } from './serving.ts';

/** How often {@link Call.sweep} is to be called. */
export const SWEEP_INTERVAL_MS = 500;
/** Node allows no longer timer. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/**
 * A call from when it comes until its stream is closed: it is admitted, routed and passed on.
 * Whatever becomes of it is counted, traced and logged once.
 */
export class Call {
  readonly #serving: Serving;
  readonly #stream: ServerHttp2Stream;
  readonly #head: CallHead;
  readonly #span: CallSpan | undefined;
  readonly #requestId: string;
  readonly #beganAtMs: number;
  #subject: string | undefined;
  /** The registration that it goes to; empty: none is found yet. */
  #service = '';
  /** Go with its answer, whatever that is: its id, and what the limit says, once it was asked. */
  #answerHeaders: Readonly<Record<string, string>>;
  /** Gives back the place that it has among those of its caller. */
  #leave: (() => void) | undefined;
  #token = '';
  /** Once it goes on to a backend. */
  #forwarding: Forwarding | undefined;
  /** How much of its answer its caller had read at the last sweep. */
  #readBytes = 0;
  /**
   * For how long its caller has read nothing of that. Counted in sweeps: while this process stands
   * still nobody is slow.
   */
  #stuckMs = 0;

  constructor(serving: Serving, stream: ServerHttp2Stream, head: CallHead) {
    const { tracer, clock } = serving;
    this.#serving = serving;
    this.#stream = stream;
    this.#head = head;
    this.#span = tracer === undefined ? undefined : startCallSpan(tracer, head, stream);
    this.#requestId = requestIdOf(head.requestId);
    this.#beganAtMs = clock.monotonicMs();
    this.#answerHeaders = { 'x-request-id': this.#requestId };
  }

  async serve(): Promise<void> {
    try {
      const forwarded = await this.#accept();
      if (forwarded === undefined) this.#record(undefined);
      else this.#forward(forwarded);
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** To be called when its stream is closed. */
  closed(): void {
    this.#leave?.();
    this.#forwarding?.closed();
  }

  /** Ends it, where it goes on to a backend. */
  stop(refusal: Refusal): void {
    this.#forwarding?.fail(refusal);
  }

  /** Ends it where nobody waits for it any more, or its caller may not have it any more. */
  sweep(): void {
    const { authenticator, limits } = this.#serving;
    const stream = this.#stream;
    const forwarding = this.#forwarding;
    // That its caller has reset without an error.
    if (stream.closed) {
      forwarding?.closed();
      stream.destroy();
      return;
    }
    if (forwarding !== undefined && !authenticator.stillHolds(this.#token))
      forwarding.fail(new Refusal(grpcStatus.UNAUTHENTICATED, 'The bearer token does not hold any more'));
    const leftBytes = stream.bufferSize;
    // What is left says nothing: where it is read steadily, that is the same at each sweep.
    const readBytes = (forwarding?.answeredBytes ?? 0) - leftBytes;
    const isStuck = (leftBytes > 0 || stream.writableEnded) && readBytes === this.#readBytes;
    this.#readBytes = readBytes;
    this.#stuckMs = isStuck ? this.#stuckMs + SWEEP_INTERVAL_MS : 0;
    const isEndedHere = stream.writableEnded && forwarding?.isAnswered !== true;
    if (this.#stuckMs < (isEndedHere ? limits.lingerMs : limits.readingGraceMs)) return;
    if (forwarding === undefined || stream.writableEnded) stream.close(constants.NGHTTP2_CANCEL);
    else forwarding.cutOff();
  }

  /**
   * Who calls, whether it may, and where it goes.
   *
   * @returns undefined: its caller has gone.
   * @throws Refusal, GatewayError; HttpError for what is HTTP and no gRPC.
   */
  async #accept(): Promise<ForwardedCall | undefined> {
    const { limits, calls, concurrency, targets, seen, identity, authenticator, requestLimits } = this.#serving;
    const stream = this.#stream;
    const head = this.#head;
    if (calls.size > limits.calls) throw busy();
    const arrived = {
      remoteAddress: stream.session?.socket.remoteAddress,
      forwardedFor: head.forwardedFor,
      // Of several none counts: it is refused for that.
      token: () => (head.repeated === undefined ? bearerToken(head.authorization) : undefined),
      onCounted: ({ caller, headers }: Counted) => {
        this.#subject = caller?.subject;
        this.#answerHeaders = { ...headers, 'x-request-id': this.#requestId };
      },
    };
    const { holder, asked } = await admit({ authenticator, limits: requestLimits }, arrived, () => readCall(head));
    if (holder === undefined) throw unauthenticated();
    if (isClosed(stream)) return undefined;
    const { caller, token } = holder;
    this.#token = token;
    this.#leave = concurrency.tryEnter(caller.subject);
    if (this.#leave === undefined) throw tooManyOfCaller();
    const { method, override, timeoutMs } = asked;
    const target = routeCall({ grpcService: method.service, override, seen }, targets);
    this.#service = target.service;
    this.#span?.admit(caller, target);
    const identityHeaders = await identity.headersFor(caller, target.service);
    await target.endpoints.refresh();
    if (isClosed(stream)) return undefined;
    return {
      head,
      span: this.#span,
      requestId: this.#requestId,
      target,
      identity: identityHeaders,
      deadlineMs: timeoutMs === undefined ? undefined : this.#beganAtMs + timeoutMs,
    };
  }

  /** Passes it on, until it is over or its deadline is. */
  #forward(forwarded: ForwardedCall): void {
    const { deadlineMs } = forwarded;
    let timer: NodeJS.Timeout | undefined;
    const forwarding = new Forwarding(this.#stream, {
      answerHeaders: this.#answerHeaders,
      open: attemptsAt(this.#serving, forwarded),
      onEnd: (status) => {
        clearTimeout(timer);
        this.#record(status);
      },
    });
    this.#forwarding = forwarding;
    if (deadlineMs !== undefined) {
      const leftMs = Math.max(0, deadlineMs - this.#serving.clock.monotonicMs());
      if (leftMs <= TIMER_MAX_MS) timer = setTimeout(() => forwarding.fail(deadlineExceeded()), leftMs);
    }
    forwarding.begin();
  }

  #refuse(error: unknown): void {
    const head = this.#head;
    const stream = this.#stream;
    if (faultOfRequest(head) !== undefined) {
      this.#record(grpcStatus.UNKNOWN);
      refuseRequest(stream, answerTo(error), { method: head.method, added: this.#answerHeaders });
      return;
    }
    const foreseen = refusalOf(error);
    if (foreseen === undefined) this.#serving.log.error({ err: error }, 'gRPC call failed');
    const refusal =
      foreseen ?? new Refusal(grpcStatus.INTERNAL, 'The call failed for a reason of ours', { cause: error });
    this.#record(refusal.status);
    refuse(stream, refusal, this.#answerHeaders);
  }

  /** @param status undefined: its caller gave it up. */
  #record(status: GrpcStatus | undefined): void {
    const { clock, accessLog, callMetrics } = this.#serving;
    const { method, path, trace } = this.#head;
    const service = this.#service;
    const ms = clock.monotonicMs() - this.#beganAtMs;
    callMetrics.observe({ service, status, ms });
    this.#span?.end(status);
    accessLog?.write({
      reqId: this.#requestId,
      trace_id: traceIdFor(this.#span, trace),
      method,
      path,
      service: service === '' ? undefined : service,
      subject: this.#subject,
      result: status === undefined ? 'abandoned' : statusName(status),
      ms: rounded(ms),
    });
  }
}

function busy(): GatewayError {
  const message = 'This replica has as many calls as it can serve';
  return new GatewayError('TOO_MANY_CONNECTIONS', { message });
}

function tooManyOfCaller(): Refusal {
  const message = 'The caller has as many calls under way as it may have';
  return new Refusal(grpcStatus.RESOURCE_EXHAUSTED, message, { retryAfterMs: 1000 });
}
