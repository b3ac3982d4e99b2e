// The only file that loads the SDK of OpenTelemetry: a third of a second, and memory, which a
// process that traces nothing shall not spend.
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import {
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type Span as SdkSpan,
  type Tracer as SdkTracer,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { sleep } from '../retry.ts';
import { createLossReport, type LossReport } from './loss-report.ts';
import type { TracingSettings } from './settings.ts';
import { formatTraceparent, spanIdOf, type TraceContext, traceFlagsOf, traceIdOf } from './trace-context.ts';
import type { Attributes, Span, Tracer } from './tracer.ts';
import type { Tracing, TracingDeps } from './tracing.ts';

/** A caller's header may be as long as all headers may be together. */
const VALUE_MAX_LENGTH = 1024;
/** A stop waits no longer for a collector. */
const FLUSH_MS = 3000;
/** Of exports at once. On their way are at most so many batches; a stop exports all that wait. */
const EXPORTS_AT_ONCE = 8;

/**
 * Traces by the SDK of OpenTelemetry, sent in batches over OTLP/HTTP. What cannot be sent is
 * dropped.
 */
export function createSdkTracing(settings: TracingSettings, { version, log, clock }: TracingDeps): Tracing {
  const report = createLossReport(log, clock);
  const { resource, batch } = settings;
  const provider = new TracerProvider({
    resource: defaultResource().merge(
      resourceFromAttributes({
        'service.version': version,
        'service.instance.id': randomUUID(),
        'host.name': hostname(),
        ...resource,
      }),
    ),
    sampler: samplerOf(settings.sampler),
    spanLimits: { attributeValueLengthLimit: VALUE_MAX_LENGTH },
    spanProcessors: [boundedProcessor(exporterOf(settings), batch, report)],
  });
  return {
    name: 'tracing',
    tracer: tracerOf(provider.getTracer('rollcall', version)),
    start() {
      log.info({ collector: new URL(settings.url).origin, ...settings.sampler }, 'requests are traced');
      return Promise.resolve();
    },
    async stop() {
      const flushed = provider.shutdown().then(
        () => true,
        // It was reported when it happened.
        () => true,
      );
      const deadline = new AbortController();
      const inTime = await Promise.race([flushed, sleep(FLUSH_MS, deadline.signal).then(() => false)]);
      deadline.abort();
      report.finish();
      if (!inTime) log.warn('the collector was too slow: the last spans may not have been exported');
    },
  };
}

function samplerOf({ parentBased, ratio }: TracingSettings['sampler']): Sampler {
  const root = new TraceIdRatioBasedSampler(ratio);
  return parentBased ? new ParentBasedSampler({ root }) : root;
}

/** The variables for compression and certificates it reads itself. */
function exporterOf({ url, headers, timeoutMs }: TracingSettings): SpanExporter {
  return new OTLPTraceExporter({
    url,
    headers: { ...headers },
    timeoutMillis: timeoutMs,
    concurrencyLimit: EXPORTS_AT_ONCE,
  });
}

/**
 * The SDK's processor drops silently what does not fit in its queue: counted here, by the same
 * bound.
 */
function boundedProcessor(exporter: SpanExporter, batch: TracingSettings['batch'], report: LossReport): SpanProcessor {
  let waiting = 0;
  const processor = new BatchSpanProcessor({
    exporter: {
      export(spans, done) {
        waiting -= spans.length;
        exporter.export(spans, (result) => {
          if (result.error !== undefined) report.lost(spans.length, result.error);
          done(result);
        });
      },
      forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
      shutdown: () => exporter.shutdown(),
    },
    scheduledDelayMillis: batch.delayMs,
    exportTimeoutMillis: batch.timeoutMs,
    maxQueueSize: batch.queueSize,
    maxExportBatchSize: batch.size,
  });
  return {
    onStart: (span, context) => processor.onStart(span, context),
    onEnd(span: ReadableSpan) {
      if ((span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0) return;
      if (waiting >= batch.queueSize) {
        report.lost(1, 'the queue is full');
        return;
      }
      waiting += 1;
      processor.onEnd(span);
    },
    forceFlush: () => processor.forceFlush(),
    shutdown: () => processor.shutdown(),
  };
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
