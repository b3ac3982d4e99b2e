import { expect, test } from 'vitest';
import { tracingSettings } from './settings.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' };
const settings = (environment: Record<string, string>) => tracingSettings(environment, 'rollcall-test');

test.each<[string, Record<string, string>]>([
  ['no endpoint', {}],
  ['an empty endpoint', { OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
  ['settings for others, without an endpoint', { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_TRACES_SAMPLER: 'odd' }],
  ['the SDK switched off', { ...ENDPOINT, OTEL_SDK_DISABLED: 'True' }],
  ['no exporter for traces', { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }],
])('%s: off', (_, environment) => {
  expect(settings(environment)).toBeUndefined();
});

test('an endpoint alone: the defaults of the specification', () => {
  expect(settings(ENDPOINT)).toEqual({
    url: 'http://collector:4318/v1/traces',
    headers: {},
    timeoutMs: 10_000,
    resource: { 'service.name': 'rollcall-test' },
    sampler: { parentBased: true, ratio: 1 },
    batch: { delayMs: 5000, timeoutMs: 30_000, queueSize: 2048, size: 512 },
  });
});

test('what is set for traces alone wins', () => {
  const made = settings({
    ...ENDPOINT,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example/own',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf',
    OTEL_EXPORTER_OTLP_HEADERS: 'a=1',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'authorization=Basic%20eA%3D%3D, x-scope = team=1 ,',
    OTEL_EXPORTER_OTLP_TIMEOUT: '1',
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '2000',
    OTEL_BSP_MAX_QUEUE_SIZE: '100',
  });
  expect(made).toMatchObject({
    url: 'https://traces.example/own',
    headers: { authorization: 'Basic eA==', 'x-scope': 'team=1' },
    timeoutMs: 2000,
    batch: { queueSize: 100, size: 100 },
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
  expect(settings({ ...ENDPOINT, OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: '0.25' })?.sampler).toEqual(
    sampler,
  );
});

test('the name of the service: its own variable, then the attributes, then ours', () => {
  const named = { ...ENDPOINT, OTEL_RESOURCE_ATTRIBUTES: 'service.name=b,k8s.pod.name=gateway%2D0' };
  expect(settings(named)?.resource).toEqual({ 'service.name': 'b', 'k8s.pod.name': 'gateway-0' });
  expect(settings({ ...named, OTEL_SERVICE_NAME: 'a' })?.resource['service.name']).toBe('a');
});

test.each<[string, Record<string, string>]>([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://user:hunter2@collector' }],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'grpc://collector:4317' }],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', { ...ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
  ['OTEL_EXPORTER_OTLP_HEADERS', { ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'hunter2' }],
  ['OTEL_EXPORTER_OTLP_HEADERS', { ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'a b=hunter2' }],
  ['OTEL_EXPORTER_OTLP_HEADERS', { ...ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS: 'a=hunter2%0d%0ab: c' }],
  ['OTEL_EXPORTER_OTLP_TIMEOUT', { ...ENDPOINT, OTEL_EXPORTER_OTLP_TIMEOUT: 'hunter2' }],
  ['OTEL_RESOURCE_ATTRIBUTES', { ...ENDPOINT, OTEL_RESOURCE_ATTRIBUTES: 'a=%zz' }],
  ['OTEL_TRACES_SAMPLER', { ...ENDPOINT, OTEL_TRACES_SAMPLER: 'jaeger_remote' }],
  ['OTEL_TRACES_SAMPLER_ARG', { ...ENDPOINT, OTEL_TRACES_SAMPLER_ARG: '1.5' }],
  ['OTEL_BSP_MAX_QUEUE_SIZE', { ...ENDPOINT, OTEL_BSP_MAX_QUEUE_SIZE: '1000000' }],
])('a fault of %s is named, and its value is not', (name, environment) => {
  expect(() => settings(environment)).toThrow(name);
  expect(() => settings(environment)).not.toThrow(/hunter2/);
});
