import { type GrpcStatus, grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { forgetGoneServices, type ServiceSeriesDeps } from '@rollcall/platform/service-series.ts';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** What a finished call is counted under. */
interface FinishedCall {
  /** The registration that it went to; empty where it went to none. */
  readonly service: string;
  /** Undefined: its caller gave it up. */
  readonly status: GrpcStatus | undefined;
  readonly ms: number;
}

/** Rate, errors and duration of calls. */
export interface CallMetrics {
  observe(call: FinishedCall): void;
}

interface Sizes {
  readonly openCalls: () => number;
  readonly connections: () => number;
  readonly upstreamConnections: () => number;
}

const NAMES: ReadonlyMap<number, string> = new Map(Object.entries(grpcStatus).map(([name, code]) => [code, name]));

/** In capitals, as the specification of gRPC writes it. */
export function statusName(status: GrpcStatus): string {
  return NAMES.get(status) ?? String(status);
}

export interface CallMetricsDeps extends ServiceSeriesDeps {
  readonly registry: Registry;
  readonly sizes: Sizes;
}

export function createCallMetrics({ registry, sizes, clock, isKnown: isRegistered }: CallMetricsDeps): CallMetrics {
  const registers = [registry];
  // Calls that went to no service are counted, too, under the empty name.
  const isKnown = (service: string): boolean => service === '' || isRegistered(service);
  const calls = new Counter({
    name: 'rollcall_gateway_grpc_calls_total',
    help: 'gRPC calls by the service they went to and the status they ended with.',
    labelNames: ['service', 'code'],
    registers,
  });
  const duration = new Histogram({
    name: 'rollcall_gateway_grpc_call_duration_seconds',
    help: 'Duration of gRPC calls, streams included, until their last byte.',
    labelNames: ['service'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 30, 300],
    registers,
  });
  forgetGoneServices([calls, duration], { clock, isKnown });
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  gauge('rollcall_gateway_grpc_open_calls', 'gRPC calls under way.', sizes.openCalls);
  gauge('rollcall_gateway_grpc_connections', 'Connections of gRPC callers.', sizes.connections);
  gauge('rollcall_gateway_grpc_upstream_connections', 'Connections to gRPC backends.', sizes.upstreamConnections);
  return {
    observe({ service, status, ms }) {
      if (!isKnown(service)) return;
      calls.inc({ service, code: statusName(status ?? grpcStatus.CANCELLED) });
      duration.observe({ service }, ms / 1000);
    },
  };
}
