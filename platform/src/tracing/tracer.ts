import type { Actor } from '../process/lifecycle.ts';
import type { TraceContext } from './trace-context.ts';

/**
 * By the names of OpenTelemetry's semantic conventions; undefined ones are left out. Never a
 * secret, nor a query.
 */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * Something with a duration, as a part of a trace. It costs little where its trace is not recorded.
 */
export interface Span {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** For whomever is called on behalf of it (W3C Trace Context). */
  readonly traceparent: string;
  rename(name: string): void;
  set(attributes: Attributes): void;
  /** Marks it as failed. The first time counts. @param type `error.type`: of few values. */
  fail(type: string): void;
  /** Nothing can be said of it afterwards. */
  end(): void;
  /** Begins a call to another process, as a part of this. */
  startClient(name: string, attributes: Attributes): Span;
}

/** Where traces begin, or go on, in a process. */
export interface Tracer {
  /**
   * Begins what was asked for from outside.
   *
   * @param given the trace that it belongs to; undefined: a new one.
   */
  startServer(name: string, given: TraceContext | undefined, attributes: Attributes): Span;
}

/**
 * Traces as a part of a process: to be stopped after everything that makes spans, for it sends the
 * last of them.
 */
export interface Tracing extends Actor {
  readonly tracer: Tracer;
}
