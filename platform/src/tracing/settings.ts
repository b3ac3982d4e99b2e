import { Type } from 'typebox';
import { type Environment, parseConfig } from '../process/config.ts';
import { httpUrlFault } from '../service-address.ts';

const text = Type.String({ default: '' });

/**
 * The variables of OpenTelemetry that the SDK leaves to its user. Endpoint, headers, timeout,
 * compression, certificates and attributes of the resource it reads itself.
 */
const schema = Type.Object({
  OTEL_EXPORTER_OTLP_PROTOCOL: text,
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: text,
  OTEL_TRACES_SAMPLER: Type.Enum(
    [
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ],
    { default: 'parentbased_always_on' },
  ),
  OTEL_TRACES_SAMPLER_ARG: Type.Number({ minimum: 0, maximum: 1, default: 1 }),
  OTEL_BSP_SCHEDULE_DELAY: Type.Integer({ minimum: 1, maximum: 60_000, default: 5000 }),
  OTEL_BSP_EXPORT_TIMEOUT: Type.Integer({ minimum: 1, maximum: 60_000, default: 30_000 }),
  OTEL_BSP_MAX_QUEUE_SIZE: Type.Integer({ minimum: 1, maximum: 65_536, default: 2048 }),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: Type.Integer({ minimum: 1, maximum: 65_536, default: 512 }),
});

/**
 * The one that the exporter speaks: every collector does, and it is the default of the
 * specification.
 */
const PROTOCOL = 'http/protobuf';

/** Which traces are sent, and how many at once. */
export interface TracingSettings {
  /** Its origin. */
  readonly collector: string;
  readonly sampler: {
    /** Whether a caller's decision holds; `ratio` is for requests without one then. */
    readonly parentBased: boolean;
    /** Share of traces that are recorded: 0 to 1. */
    readonly ratio: number;
  };
  readonly batch: {
    readonly scheduledDelayMillis: number;
    readonly exportTimeoutMillis: number;
    /** Spans that wait; more are dropped. */
    readonly maxQueueSize: number;
    readonly maxExportBatchSize: number;
  };
}

/**
 * Reads the standard variables of OpenTelemetry. A variable for traces alone wins over the one for
 * all signals.
 *
 * @returns undefined where nothing is to be traced: no endpoint is set, or the SDK or its exporter
 * is switched off.
 * @throws Error naming every faulty variable, or what is wrong with one; never with its value.
 */
export function tracingSettings(environment: Environment): TracingSettings | undefined {
  const name = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'].find((each) => environment[each]);
  if (name === undefined || environment['OTEL_TRACES_EXPORTER'] === 'none') return undefined;
  if (environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return undefined;
  const parsed = parseConfig(schema, environment);
  const endpoint = environment[name] ?? '';
  const fault = httpUrlFault(endpoint);
  if (fault !== undefined) throw new Error(`Invalid configuration:\n  ${name} ${fault}`);
  const protocol = parsed.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || parsed.OTEL_EXPORTER_OTLP_PROTOCOL || PROTOCOL;
  if (protocol !== PROTOCOL)
    throw new Error(`Invalid configuration:\n  OTEL_EXPORTER_OTLP_PROTOCOL must be ${PROTOCOL}`);
  return {
    collector: new URL(endpoint).origin,
    sampler: samplerOf(parsed.OTEL_TRACES_SAMPLER, parsed.OTEL_TRACES_SAMPLER_ARG),
    batch: {
      scheduledDelayMillis: parsed.OTEL_BSP_SCHEDULE_DELAY,
      exportTimeoutMillis: parsed.OTEL_BSP_EXPORT_TIMEOUT,
      maxQueueSize: parsed.OTEL_BSP_MAX_QUEUE_SIZE,
      maxExportBatchSize: Math.min(parsed.OTEL_BSP_MAX_EXPORT_BATCH_SIZE, parsed.OTEL_BSP_MAX_QUEUE_SIZE),
    },
  };
}

function samplerOf(name: string, ratio: number): TracingSettings['sampler'] {
  const parentBased = name.startsWith('parentbased_');
  if (name.endsWith('ratio')) return { parentBased, ratio };
  return { parentBased, ratio: name.endsWith('always_on') ? 1 : 0 };
}
