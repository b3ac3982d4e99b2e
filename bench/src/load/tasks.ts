import { objectNameFor } from '@rollcall/crds/kinds.ts';

/** Services `<prefix><five digits>`, or several instances of each, counted from `first`. */
export interface NameRange {
  readonly prefix: string;
  readonly first: number;
  readonly count: number;
  /** How many instances a service has; with one, the default, it has no id. */
  readonly perName?: number;
}

/** All names of a range have the same length, so that answers about them have, too. */
export function nameOf({ prefix, first, perName = 1 }: NameRange, index: number): string {
  return `${prefix}${String(Math.floor((first + index) / perName)).padStart(5, '0')}`;
}

/** The id of an instance; undefined where services have one each. */
export function instanceIdOf({ first, perName = 1 }: NameRange, index: number): string | undefined {
  return perName === 1 ? undefined : `i-${(first + index) % perName}`;
}

/** The name of the objects of an instance. */
export function objectOf(names: NameRange, index: number): string {
  return objectNameFor(nameOf(names, index), instanceIdOf(names, index));
}

/** How a load is paced. */
export type Pace =
  /** So many, each connection sending the next as soon as it has its answer. */
  | { readonly amount: number }
  /**
   * So many a second for so long, whatever the answers do; latency counts from when each was due,
   * and not in the first `settleMs` (0 by default), in which server and generator come back from
   * having rested.
   */
  | { readonly ratePerSecond: number; readonly durationMs: number; readonly settleMs?: number };

/** Of a request: a path and a body in place of the task's, and further headers. */
export interface OwnPart {
  readonly path?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** HTTP/1.1 requests to 127.0.0.1, the instances in turn; a POST says in `x-instance-id` which it is. */
export interface HttpTask {
  readonly kind: 'http';
  readonly port: number;
  readonly method: 'GET' | 'POST';
  /** `{name}` in it, and in the body, stands for the name of the one whose turn it is. */
  readonly path: string;
  /** JSON. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** What requests have of their own, in turn; as many of them are made as there are names. */
  readonly inTurn?: readonly OwnPart[];
  readonly names: NameRange;
  readonly connections: number;
  readonly pace: Pace;
}

/** The Lease patches that heartbeats cause, made by undici with nothing around it. */
export interface LeaseTask {
  readonly kind: 'leases';
  readonly kubeconfigPath: string;
  readonly namespace: string;
  readonly names: NameRange;
  readonly connections: number;
  readonly pace: Pace;
}

/** Unary gRPC calls of 100 bytes to 127.0.0.1, by grpc-js. */
export interface GrpcTask {
  readonly kind: 'grpc';
  readonly port: number;
  /** In the metadata of each. */
  readonly token: string;
  readonly connections: number;
  /** Under way at once, over all connections. */
  readonly calls: number;
  readonly pace: Pace;
}

/**
 * WebSocket clients of the gateway that follow `registrations`, while one service after the other
 * is registered.
 */
export interface SubscribersTask {
  readonly kind: 'subscribers';
  /** Of the gateway. */
  readonly port: number;
  /** The subscribers alternate between them. */
  readonly tokens: readonly string[];
  readonly subscribers: number;
  readonly registryPort: number;
  /**
   * Of the services: an event each. Latency counts from the call that registers one to each arrival
   * of its event.
   */
  readonly names: NameRange;
  readonly intervalMs: number;
}

/** GraphQL subscriptions by WebSocket, one on each, to events that say in `at` when they happened. */
export interface TicksTask {
  readonly kind: 'ticks';
  readonly port: number;
  readonly path: string;
  /** Of callers, in turn. */
  readonly tokens: readonly string[];
  /** How many different subscriptions each caller has. */
  readonly topics: number;
  readonly subscribers: number;
  /** Events are counted for so long, once each subscription has had one. */
  readonly durationMs: number;
}

/**
 * `{0}`, `{1}` and so on in a value stand for UUIDs, new for each request, and `{0x}` for their bytes.
 * Bytes are written as `\\x…`.
 */
export interface Statement {
  readonly text: string;
  readonly values: readonly (string | null)[];
}

/** Transactions of PostgreSQL, through a pool like those of services and with nothing around it. */
export interface TransactionTask {
  readonly kind: 'transactions';
  readonly databaseUrl: string;
  readonly schema: string;
  /** Of one request, one after the other; a single statement needs no BEGIN. */
  readonly transactions: readonly (readonly Statement[])[];
  readonly connections: number;
  readonly pace: Pace;
}

/** Mails to 127.0.0.1 by a pool of nodemailer with nothing around it. */
export interface MailTask {
  readonly kind: 'mails';
  readonly smtpPort: number;
  readonly mail: {
    readonly from: string;
    readonly to: string;
    readonly subject: string;
    readonly text: string;
    readonly html: string;
  };
  readonly connections: number;
  readonly pace: Pace;
}

export type Task = HttpTask | LeaseTask | GrpcTask | SubscribersTask | TicksTask | TransactionTask | MailTask;

export interface LoadResult {
  readonly requests: number;
  /** Answers other than 2xx, and requests that got none. */
  readonly failures: number;
  /** Answers by HTTP status, `none` for missing ones. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Milliseconds since 1970: when the first was due. */
  readonly startedAtMs: number;
  readonly elapsedMs: number;
  readonly perSecond: number;
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly max: number };
  /** What the generator itself used. Near `elapsedMs` it was the generator that was measured. */
  readonly generatorCpuMs: number;
}

/** What the generator process answers to a {@link Task}. */
export type Reply = { readonly result: LoadResult } | { readonly error: string };
