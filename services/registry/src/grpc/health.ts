import {
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { unavailable } from './errors.ts';

interface HealthCheckRequest {
  readonly service: string;
}

interface HealthCheckResponse {
  readonly status: Serving | 'SERVICE_UNKNOWN';
}

type Serving = 'SERVING' | 'NOT_SERVING';
type WatchCall = ServerWritableStream<HealthCheckRequest, HealthCheckResponse>;

/** The standard health service (grpc/doc/health-checking.md). */
export interface Health {
  readonly implementation: UntypedServiceImplementation;
  set(serving: Serving): void;
  /** Ends the watches. */
  closeAll(): void;
}

const MAX_STREAMS = 1000;

/** @param services that have the server's health; the empty name stands for the server itself. */
export function createHealth(services: readonly string[]): Health {
  const known = new Set(['', ...services]);
  const watches = new Map<WatchCall, string>();
  let serving: Serving = 'NOT_SERVING';

  const healthOf = (service: string): HealthCheckResponse => ({
    status: known.has(service) ? serving : 'SERVICE_UNKNOWN',
  });

  return {
    implementation: {
      Check(
        call: ServerUnaryCall<HealthCheckRequest, HealthCheckResponse>,
        callback: sendUnaryData<HealthCheckResponse>,
      ) {
        const { service } = call.request;
        if (known.has(service)) callback(null, healthOf(service));
        else callback({ code: status.NOT_FOUND, details: `There is no service '${service}' here` });
      },
      Watch(call: WatchCall) {
        if (watches.size >= MAX_STREAMS) {
          call.emit('error', unavailable(`This replica has ${MAX_STREAMS} open watches of its health`));
          return;
        }
        const { service } = call.request;
        watches.set(call, service);
        call.once('cancelled', () => watches.delete(call));
        call.write(healthOf(service));
      },
    },
    set(next) {
      if (next === serving) return;
      serving = next;
      for (const [call, service] of watches) if (known.has(service)) call.write(healthOf(service));
    },
    closeAll() {
      for (const call of watches.keys()) call.emit('error', unavailable('The registry is stopping'));
      watches.clear();
    },
  };
}
