import type { ServerHttp2Stream } from 'node:http2';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { Tracer } from '@rollcall/platform/tracing/tracer.ts';
import type { ConcurrencyLimiter } from '@rollcall/platform/work/concurrency-limiter.ts';
import type { Registry } from 'prom-client';
import type { AccessLog } from '../../access-log.ts';
import type { Authenticator } from '../../admission/caller.ts';
import type { Limits } from '../../admission/limits.ts';
import type { BackendIdentity } from '../../identity/backend-identity.ts';
import type { Lookups } from '../../upstream/discovery/lookups.ts';
import type { BackendPool } from './backend-pool.ts';
import type { Forwarding } from './call.ts';
import type { CallMetrics } from './call-metrics.ts';
import type { CallSpan } from './call-span.ts';
import type { CallHead } from './headers.ts';
import type { OwnHealth } from './health.ts';
import type { GrpcLimits } from './limits.ts';
import type { GrpcTargets } from './targets.ts';

export interface GrpcProxyDeps {
  /** Undefined: any address. */
  readonly host: string | undefined;
  /** 0: any free one. */
  readonly port: number;
  readonly authenticator: Authenticator;
  readonly requestLimits: Pick<Limits, 'check'>;
  readonly targets: GrpcTargets;
  readonly lookups: Lookups;
  readonly identity: Pick<BackendIdentity, 'headersFor'>;
  readonly log: Logger;
  readonly metrics: Registry;
  readonly clock: Clock;
  /**
   * Between saying NOT_SERVING and refusing connections: as long as proxies in front need to
   * notice.
   */
  readonly drainMs: number;
  /** How long calls may then go on. */
  readonly closingLimitMs: number;
  /** Undefined: calls are not traced; what a caller says of a trace goes on as it is. */
  readonly tracer?: Tracer | undefined;
  /** Undefined: it is off. */
  readonly accessLog?: AccessLog | undefined;
  readonly limits?: Partial<GrpcLimits>;
}

/** What serving calls needs. */
export interface Serving {
  readonly deps: GrpcProxyDeps;
  readonly limits: GrpcLimits;
  /** Those under way. */
  readonly calls: Set<KnownCall>;
  /** Of the calls of one subject. */
  readonly concurrency: Pick<ConcurrencyLimiter, 'tryEnter'>;
  /** The gRPC services that had a target; one that is dropped for others comes back with its calls. */
  readonly seen: Set<string>;
  readonly health: OwnHealth;
  readonly backends: BackendPool;
  readonly callMetrics: CallMetrics;
}

/**
 * A call from when it came until its stream is closed, and what is known of it, the more the
 * further it is.
 */
export interface KnownCall {
  readonly stream: ServerHttp2Stream;
  readonly head: CallHead;
  readonly span: CallSpan | undefined;
  readonly requestId: string;
  readonly beganAtMs: number;
  subject?: string | undefined;
  /** The registration that it goes to; empty: none is found yet. */
  service: string;
  /** Goes with its answer, whatever that is: its id, and what the limit says, once it was asked. */
  answerHeaders: Readonly<Record<string, string>>;
  /** Gives back the place that it has among those of its caller. */
  leave?: (() => void) | undefined;
  /** Once it goes on to a backend. */
  forwarded?: { readonly token: string; readonly call: Forwarding };
  /** How much of its answer its caller had read at the last sweep. */
  readBytes: number;
  /**
   * For how long its caller has read nothing of that. Counted in sweeps: while this process stands
   * still nobody is slow.
   */
  stuckMs: number;
}
