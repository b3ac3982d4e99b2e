import { validateHeaderName, validateHeaderValue } from 'node:http';
import { type Static, Type } from 'typebox';
import { type Environment, parseConfig } from '../process/config.ts';
import { httpUrlFault } from '../service-address.ts';

const timeoutMs = Type.Integer({ minimum: 1, maximum: 60_000 });
const text = Type.String({ minLength: 1 });

/** The variables of OpenTelemetry that a process here reads itself. */
const schema = Type.Object({
  OTEL_EXPORTER_OTLP_ENDPOINT: Type.Optional(text),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: Type.Optional(text),
  OTEL_EXPORTER_OTLP_PROTOCOL: Type.Optional(text),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: Type.Optional(text),
  OTEL_EXPORTER_OTLP_HEADERS: Type.Optional(text),
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: Type.Optional(text),
  OTEL_EXPORTER_OTLP_TIMEOUT: Type.Optional(timeoutMs),
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: Type.Optional(timeoutMs),
  OTEL_SERVICE_NAME: Type.Optional(text),
  OTEL_RESOURCE_ATTRIBUTES: Type.String({ default: '' }),
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
const DEFAULT_TIMEOUT_MS = 10_000;

/** Where traces go, and which. */
export interface TracingSettings {
  readonly url: string;
  /** They may hold a secret. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Who says all this, by the names of the semantic conventions; `service.name` among them. */
  readonly resource: Readonly<Record<string, string>>;
  readonly sampler: {
    /** Whether a caller's decision holds; `ratio` is for requests without one then. */
    readonly parentBased: boolean;
    /** Share of traces that are recorded: 0 to 1. */
    readonly ratio: number;
  };
  readonly batch: {
    readonly delayMs: number;
    readonly timeoutMs: number;
    /** Spans that wait; more are dropped. */
    readonly queueSize: number;
    readonly size: number;
  };
}

/**
 * Reads the standard variables of OpenTelemetry. A variable for traces alone wins over the one for
 * all signals.
 *
 * @param serviceName unless the environment has another.
 * @returns undefined where nothing is to be traced: no endpoint is set, or the SDK or its exporter
 * is switched off.
 * @throws Error naming every faulty variable, or what is wrong with one; never with its value.
 */
export function tracingSettings(environment: Environment, serviceName: string): TracingSettings | undefined {
  const has = (name: string) => (environment[name] ?? '') !== '';
  if (!has('OTEL_EXPORTER_OTLP_ENDPOINT') && !has('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')) return undefined;
  if (environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true' || environment['OTEL_TRACES_EXPORTER'] === 'none') {
    return undefined;
  }
  const parsed = parseConfig(schema, environment);
  const protocol = parsed.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? parsed.OTEL_EXPORTER_OTLP_PROTOCOL ?? PROTOCOL;
  if (protocol !== PROTOCOL) throw refuse('OTEL_EXPORTER_OTLP_PROTOCOL', `must be ${PROTOCOL}`);
  const headers = parsed.OTEL_EXPORTER_OTLP_TRACES_HEADERS ?? parsed.OTEL_EXPORTER_OTLP_HEADERS ?? '';
  const given = keyValues('OTEL_RESOURCE_ATTRIBUTES', parsed.OTEL_RESOURCE_ATTRIBUTES);
  return {
    url: urlOf(parsed),
    headers: headersOf(headers),
    timeoutMs: parsed.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT ?? parsed.OTEL_EXPORTER_OTLP_TIMEOUT ?? DEFAULT_TIMEOUT_MS,
    resource: { ...given, 'service.name': parsed.OTEL_SERVICE_NAME ?? given['service.name'] ?? serviceName },
    sampler: samplerOf(parsed),
    batch: {
      delayMs: parsed.OTEL_BSP_SCHEDULE_DELAY,
      timeoutMs: parsed.OTEL_BSP_EXPORT_TIMEOUT,
      queueSize: parsed.OTEL_BSP_MAX_QUEUE_SIZE,
      size: Math.min(parsed.OTEL_BSP_MAX_EXPORT_BATCH_SIZE, parsed.OTEL_BSP_MAX_QUEUE_SIZE),
    },
  };
}

type Parsed = Static<typeof schema>;

/** The endpoint for all signals is a base; that for traces is used as it is. */
function urlOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own, OTEL_EXPORTER_OTLP_ENDPOINT: base = '' }: Parsed): string {
  const name = own === undefined ? 'OTEL_EXPORTER_OTLP_ENDPOINT' : 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
  const fault = httpUrlFault(own ?? base);
  if (fault !== undefined) throw refuse(name, fault);
  return own ?? `${base.replace(/\/+$/, '')}/v1/traces`;
}

function samplerOf({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio }: Parsed): TracingSettings['sampler'] {
  const parentBased = name.startsWith('parentbased_');
  if (name.endsWith('always_on')) return { parentBased, ratio: 1 };
  if (name.endsWith('always_off')) return { parentBased, ratio: 0 };
  return { parentBased, ratio };
}

function headersOf(given: string): Record<string, string> {
  const headers = keyValues('OTEL_EXPORTER_OTLP_HEADERS', given);
  for (const [name, value] of Object.entries(headers)) {
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch {
      throw refuse('OTEL_EXPORTER_OTLP_HEADERS', 'has what is no header');
    }
  }
  return headers;
}

/** `name=value,name=value`, values percent-encoded (W3C Baggage, without properties). */
function keyValues(variable: string, given: string): Record<string, string> {
  const pairs = given.split(',').filter((pair) => pair.trim() !== '');
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      const name = pair.slice(0, Math.max(0, at)).trim();
      if (name === '') throw refuse(variable, 'must be name=value, separated by commas');
      try {
        return [decodeURIComponent(name), decodeURIComponent(pair.slice(at + 1).trim())];
      } catch {
        throw refuse(variable, 'has a percent sign that encodes nothing');
      }
    }),
  );
}

function refuse(variable: string, why: string): Error {
  return new Error(`Invalid configuration:\n  ${variable} ${why}`);
}
