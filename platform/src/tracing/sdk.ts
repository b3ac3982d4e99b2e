// The only file that loads the SDK of OpenTelemetry: a third of a second, and memory, which a
// process that traces nothing shall not spend.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import {
  type Context,
  createTraceState,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span as SdkSpan,
  type Tracer as SdkTracer,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Clock } from '../clock.ts';
import { errorMessage } from '../errors.ts';
import type { Logger } from '../process/log.ts';
import { sleep } from '../retry.ts';
import type { TracingSettings } from './settings.ts';
import { formatTraceparent, spanIdOf, type TraceContext, traceFlagsOf, traceIdOf } from './trace-context.ts';
import type { Attributes, Span, Tracer, Tracing } from './tracer.ts';

/** A caller's header may be as long as all headers may be together. */
const VALUE_MAX_LENGTH = 1024;
/** A stop waits no longer for a collector. */
const FLUSH_MS = 3000;
/** Of exports at once. On their way are at most so many batches; a stop exports all that wait. */
const EXPORTS_AT_ONCE = 8;
const REPORT_INTERVAL_MS = 60_000;
/** What a collector says may be as long as it likes. */
const REASON_MAX_LENGTH = 200;

/** What a process says of itself, and with. */
interface TracingDeps {
  /** Its name in traces, unless the environment has another. */
  readonly component: string;
  readonly version: string;
  readonly log: Logger;
  readonly clock: Clock;
}

/**
 * Traces by the SDK of OpenTelemetry, sent in batches over OTLP/HTTP. What cannot be sent is
 * dropped.
 */
export function createSdkTracing(settings: TracingSettings, deps: TracingDeps): Tracing {
  const { component, version, log } = deps;
  const { collector, sampler, batch } = settings;
  const report = createLossReport(deps);
  // The SDK's processor says so by its diagnosis alone when its queue is full.
  diag.setLogger({ error() {}, warn: report, info() {}, debug() {}, verbose() {} }, DiagLogLevel.WARN);
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(
        resourceFromAttributes({
          'service.name': component,
          'service.version': version,
          'service.instance.id': randomUUID(),
          'host.name': hostname(),
        }),
      )
      .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })),
    sampler: samplerOf(sampler),
    spanLimits: { attributeValueLengthLimit: VALUE_MAX_LENGTH },
    spanProcessors: [new BatchSpanProcessor({ ...batch, exporter: new ReportingExporter(report) })],
  });
  return {
    name: 'tracing',
    tracer: tracerOf(provider.getTracer('rollcall', version)),
    start() {
      log.info({ collector, ...sampler }, 'requests are traced');
      return Promise.resolve();
    },
    async stop() {
      // What cannot be sent was reported when that happened.
      const flushed = provider.shutdown().catch(() => undefined);
      const deadline = new AbortController();
      const late = sleep(FLUSH_MS, deadline.signal);
      if ((await Promise.race([flushed, late])) === true) {
        log.warn('the collector was too slow: the last spans may not have been exported');
      }
      deadline.abort();
    },
  };
}

/** Logs why spans were lost, at most once in a minute, however many are. */
function createLossReport({ log, clock }: TracingDeps): (reason: string) => void {
  let reportedAtMs = Number.NEGATIVE_INFINITY;
  return (reason) => {
    const nowMs = clock.monotonicMs();
    if (nowMs - reportedAtMs < REPORT_INTERVAL_MS) return;
    reportedAtMs = nowMs;
    log.warn({ reason: reason.slice(0, REASON_MAX_LENGTH) }, 'spans were not exported');
  };
}

function samplerOf({ parentBased, ratio }: TracingSettings['sampler']): Sampler {
  const root = new TraceIdRatioBasedSampler(ratio);
  return parentBased ? new ParentBasedSampler({ root }) : root;
}

/** Reads endpoint, headers, timeout, compression and certificates from the environment itself. */
class ReportingExporter extends OTLPTraceExporter {
  readonly #report: (reason: string) => void;

  constructor(report: (reason: string) => void) {
    super({ concurrencyLimit: EXPORTS_AT_ONCE });
    this.#report = report;
  }

  override export(...[spans, done]: Parameters<SpanExporter['export']>): void {
    super.export(spans, (result) => {
      if (result.error !== undefined) this.#report(errorMessage(result.error));
      done(result);
    });
  }
}

function tracerOf(tracer: SdkTracer): Tracer {
  return {
    startServer(name, given, attributes) {
      const context = given === undefined ? ROOT_CONTEXT : contextOf(given);
      return new TracedSpan(tracer, tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, context));
    },
  };
}

function contextOf({ traceparent, tracestate }: TraceContext): Context {
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId: traceIdOf(traceparent),
    spanId: spanIdOf(traceparent),
    traceFlags: traceFlagsOf(traceparent),
    isRemote: true,
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  });
}

class TracedSpan implements Span {
  readonly #tracer: SdkTracer;
  readonly #span: SdkSpan;
  #failed = false;

  constructor(tracer: SdkTracer, span: SdkSpan) {
    this.#tracer = tracer;
    this.#span = span;
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  get traceparent(): string {
    const { traceId, spanId, traceFlags } = this.#span.spanContext();
    return formatTraceparent(traceId, spanId, (traceFlags & TraceFlags.SAMPLED) !== 0);
  }

  rename(name: string): void {
    this.#span.updateName(name);
  }

  set(attributes: Attributes): void {
    this.#span.setAttributes(attributes);
  }

  fail(type: string): void {
    if (this.#failed) return;
    this.#failed = true;
    this.#span.setAttribute('error.type', type);
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
  }

  end(): void {
    this.#span.end();
  }

  startClient(name: string, attributes: Attributes): Span {
    const context = trace.setSpan(ROOT_CONTEXT, this.#span);
    return new TracedSpan(this.#tracer, this.#tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, context));
  }
}
