import { expect, test } from 'vitest';
import { tracingSettings } from './settings.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' };

test.each<[string, Record<string, string>]>([
  ['no endpoint', {}],
  ['an empty endpoint', { OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
  ['settings for others, without an endpoint', { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_TRACES_SAMPLER: 'odd' }],
  ['the SDK switched off', { ...ENDPOINT, OTEL_SDK_DISABLED: 'True' }],
  ['no exporter for traces', { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }],
])('%s: off', (_, environment) => {
  expect(tracingSettings(environment)).toBeUndefined();
});

test('an endpoint alone: the defaults of the specification', () => {
  expect(tracingSettings(ENDPOINT)).toEqual({
    collector: 'http://collector:4318',
    sampler: { parentBased: true, ratio: 1 },
    batch: { scheduledDelayMillis: 5000, exportTimeoutMillis: 30_000, maxQueueSize: 2048, maxExportBatchSize: 512 },
  });
});

test('what is set for traces alone wins', () => {
  const made = tracingSettings({
    ...ENDPOINT,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example/own',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf',
    OTEL_BSP_EXPORT_TIMEOUT: '2000',
    OTEL_BSP_MAX_QUEUE_SIZE: '100',
  });
  expect(made).toMatchObject({
    collector: 'https://traces.example',
    batch: { exportTimeoutMillis: 2000, maxQueueSize: 100, maxExportBatchSize: 100 },
  });
});

test.each([
  ['always_on', { parentBased: false, ratio: 1 }],
  ['always_off', { parentBased: false, ratio: 0 }],
  ['traceidratio', { parentBased: false, ratio: 0.25 }],
  ['parentbased_always_on', { parentBased: true, ratio: 1 }],
  ['parentbased_always_off', { parentBased: true, ratio: 0 }],
  ['parentbased_traceidratio', { parentBased: true, ratio: 0.25 }],
])('the sampler %s', (name, sampler) => {
  const environment = { ...ENDPOINT, OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: '0.25' };
  expect(tracingSettings(environment)?.sampler).toEqual(sampler);
});

test.each<[string, Record<string, string>]>([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://user:hunter2@collector' }],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'grpc://collector:4317' }],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
  ['OTEL_TRACES_SAMPLER', { ...ENDPOINT, OTEL_TRACES_SAMPLER: 'jaeger_remote' }],
  ['OTEL_TRACES_SAMPLER_ARG', { ...ENDPOINT, OTEL_TRACES_SAMPLER_ARG: '1.5' }],
  ['OTEL_BSP_MAX_QUEUE_SIZE', { ...ENDPOINT, OTEL_BSP_MAX_QUEUE_SIZE: '1000000' }],
])('a fault of %s is named, and its value is not', (name, environment) => {
  expect(() => tracingSettings(environment)).toThrow(name);
  expect(() => tracingSettings(environment)).not.toThrow(/hunter2/);
});
