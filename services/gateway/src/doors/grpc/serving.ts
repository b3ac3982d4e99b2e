import type { Clock } from '@rollcall/platform/clock.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { ConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import type { Tracer } from '@rollcall/platform/tracing/tracer.ts';
import type { AccessLog } from '../../access-log.ts';
import type { Authenticator } from '../../admission/caller.ts';
import type { Limits } from '../../admission/limits.ts';
import type { BackendIdentity } from '../../identity/backend-identity.ts';
import type { BackendPool } from './backend-pool.ts';
import type { CallMetrics } from './call-metrics.ts';
import type { GrpcLimits } from './limits.ts';
import type { GrpcTargets } from './targets.ts';

/** What serving calls needs of the process. */
export interface ServingDeps {
  readonly authenticator: Authenticator;
  readonly requestLimits: Pick<Limits, 'check'>;
  readonly targets: GrpcTargets;
  readonly identity: Pick<BackendIdentity, 'headersFor'>;
  readonly log: Logger;
  readonly clock: Clock;
  /** Undefined: calls are not traced; what a caller says of a trace goes on as it is. */
  readonly tracer?: Tracer | undefined;
  /** Undefined: it is off. */
  readonly accessLog?: AccessLog | undefined;
}

/** What serving calls needs. */
export interface Serving extends ServingDeps {
  readonly limits: GrpcLimits;
  /** Those under way. */
  readonly calls: ReadonlySet<object>;
  /** Of the calls of one subject. */
  readonly concurrency: Pick<ConcurrencyLimiter, 'tryEnter'>;
  /** The gRPC services that had a target; one that is dropped for others comes back with its calls. */
  readonly seen: Set<string>;
  readonly backends: BackendPool;
  readonly callMetrics: CallMetrics;
}
