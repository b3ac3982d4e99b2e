import type { IncomingMessage } from 'node:http';
import type { Clock } from '@rollcall/platform/clock.ts';
import { requestIdOf } from '@rollcall/platform/http/request-id.ts';
import { pathOf } from '@rollcall/platform/http/server.ts';
import type { TraceContext } from '@rollcall/platform/tracing/trace-context.ts';
import type { Span } from '@rollcall/platform/tracing/tracer.ts';
import { type AccessEntry, type AccessLog, rounded } from '../../access-log.ts';
import type { Counted } from '../../admission/admission.ts';
import { shownPath } from '../../upstream/routing/secret-paths.ts';
import { givenTraceContext, traceIdFor } from '../trace-context.ts';

interface AskedUpgradeDeps {
  readonly clock: Clock;
  /** Undefined: it is off. */
  readonly accessLog?: AccessLog | undefined;
}

/** By which the access log names an upgrade, and the connection that came of it. */
export type Names = Pick<AccessEntry, 'reqId' | 'trace_id' | 'method' | 'path' | 'subject'>;

/** An upgrade that is asked for, and what is known of it. */
export class AskedUpgrade {
  readonly request: IncomingMessage;
  /** What a service's part in the trace begins below; undefined: it may begin one. */
  readonly trace: TraceContext | undefined;
  readonly #askedAtMs: number;
  readonly #clock: Clock;
  readonly #accessLog: AccessLog | undefined;
  readonly #named: Pick<AccessEntry, 'reqId' | 'trace_id' | 'method' | 'path'>;
  #counted: Counted | undefined;

  /** @param span of the upgrade; undefined: it is not traced. */
  constructor(request: IncomingMessage, span: Span | undefined, { clock, accessLog }: AskedUpgradeDeps) {
    const { headers, method = '', url } = request;
    const given = givenTraceContext(headers);
    this.trace = span === undefined ? given : { traceparent: span.traceparent, tracestate: given?.tracestate };
    this.request = request;
    this.#askedAtMs = clock.monotonicMs();
    this.#clock = clock;
    this.#accessLog = accessLog;
    this.#named = {
      reqId: requestIdOf(headers['x-request-id']),
      trace_id: traceIdFor(span, given),
      method,
      path: shownPath(pathOf(url)),
    };
  }

  counted(counted: Counted): void {
    this.#counted = counted;
  }

  /** By which the access log names it. */
  get names(): Names {
    return { ...this.#named, subject: this.#counted?.caller?.subject };
  }

  /** For the answer, whatever it is. */
  get answerHeaders(): Readonly<Record<string, string>> {
    return { 'x-request-id': this.#named.reqId, ...this.#counted?.headers };
  }

  record(outcome: Pick<AccessEntry, 'result' | 'code'>): void {
    this.#accessLog?.write({ ...this.names, ...outcome, ms: rounded(this.#clock.monotonicMs() - this.#askedAtMs) });
  }
}
