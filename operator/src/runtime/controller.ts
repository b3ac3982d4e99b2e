import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '@rollcall/platform/clock.ts';
import { isUnavailable, KubeUnreachableError } from '@rollcall/platform/kube/errors.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { createWorkQueue } from '@rollcall/platform/queues/workqueue.ts';
import { type Applier, RefusedError, StaleError } from './apply.ts';
import { type Change, type Decision, TerminalError } from './decision.ts';
import type { RuntimeMetrics } from './runtime-metrics.ts';

const RETRY = { baseDelayMs: 5, maxDelayMs: 30_000 };
/**
 * Reconciles that change nothing never wait; after this long the workers let timers and sockets
 * have a turn.
 */
const TURN_MS = 10;

/** What a controller does with a key (`namespace/name`): observe, plan, apply. */
export interface Reconciler<Snapshot> {
  readonly name: string;
  /** How many keys are worked on at once; one key never is twice. */
  readonly concurrency: number;
  /**
   * Whether a key goes before others that wait; asked whenever it is to wait. All are alike by
   * default.
   */
  isUrgent?(key: string): boolean;
  /** Every key there is, for the start and for resyncs. */
  keys(): Iterable<string>;
  /** Reads; writes nothing. Undefined when there is nothing to decide. */
  observe(key: string): Promise<Snapshot | undefined> | Snapshot | undefined;
  /** Pure. */
  plan(snapshot: Snapshot): Decision;
  /** Called once all changes of a decision are made, for the reconciler's own metrics. */
  onApplied?(snapshot: Snapshot, decision: Decision): void;
  /** Called when a reconcile failed, also by a view that was stale. */
  onFailed?(key: string, error: unknown): void;
  /**
   * Whether a key is tried again also after what trying again alone does not mend, because time
   * may; false by default.
   */
  readonly retriesTerminalErrors?: boolean;
}

export interface ControllerDeps {
  readonly applier: Applier;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<RuntimeMetrics, 'controller'>;
}

export interface Controller {
  /** Reconciles every key, then the enqueued ones. */
  start(): void;
  /** Resolves when no reconcile is under way. */
  stop(): Promise<void>;
  /** Enqueues a key; ignored while the controller does not run, because starting reconciles all. */
  enqueue(key: string): void;
  /** Whether more keys wait than are worked on. */
  isBusy(): boolean;
  /** Enqueues a key for no later than after the delay. */
  enqueueAfter(key: string, delayMs: number): void;
}

/**
 * What a reconcile came to; {@link createController} alone turns it into queue operations and
 * metrics.
 */
type Outcome =
  | { readonly result: 'success' }
  | { readonly result: 'requeue_after'; readonly afterMs: number }
  | { readonly result: 'requeue'; readonly error: StaleError }
  | { readonly result: 'error'; readonly error: unknown };

export function createController<Snapshot>(reconciler: Reconciler<Snapshot>, deps: ControllerDeps): Controller {
  const { applier, clock } = deps;
  const metrics = deps.metrics.controller(reconciler.name, reconciler.concurrency);
  const log = deps.log.child({ controller: reconciler.name });
  const isUrgent = reconciler.isUrgent?.bind(reconciler);
  const queue = createWorkQueue({ clock, ...RETRY, isUrgent, metrics: metrics.queue });
  let workers: Promise<void>[] | undefined;
  let turnEndsMs = 0;
  metrics.unfinished(() => queue.unfinishedMs());

  async function reconcile(key: string): Promise<Outcome> {
    try {
      const snapshot = await reconciler.observe(key);
      if (snapshot === undefined) return { result: 'success' };
      const decision = reconciler.plan(snapshot);
      await applyAll(applier, decision.changes);
      reconciler.onApplied?.(snapshot, decision);
      const { requeueAfterMs } = decision;
      return requeueAfterMs === undefined
        ? { result: 'success' }
        : { result: 'requeue_after', afterMs: requeueAfterMs };
    } catch (error) {
      return error instanceof StaleError ? { result: 'requeue', error } : { result: 'error', error };
    }
  }

  function settle(key: string, outcome: Outcome): void {
    if (outcome.result === 'requeue') {
      log.info({ key, reason: outcome.error.message }, 'observing again');
      reconciler.onFailed?.(key, outcome.error);
    } else if (outcome.result === 'error') {
      logError(log, key, outcome.error);
      reconciler.onFailed?.(key, outcome.error);
    }
    const terminal = outcome.result === 'error' && outcome.error instanceof TerminalError;
    if (terminal) metrics.terminalError();
    const isRetried = !terminal || reconciler.retriesTerminalErrors === true;
    if (outcome.result === 'requeue' || (outcome.result === 'error' && isRetried)) {
      queue.addRateLimited(key);
      return;
    }
    queue.forget(key);
    if (outcome.result === 'requeue_after') queue.addAfter(key, outcome.afterMs);
  }

  async function work(): Promise<void> {
    for (let key = await queue.next(); key !== undefined; key = await queue.next()) {
      const startedMs = clock.monotonicMs();
      metrics.activeWorkers(1);
      const outcome = await reconcile(key);
      settle(key, outcome);
      queue.done(key);
      metrics.activeWorkers(-1);
      const endedMs = clock.monotonicMs();
      metrics.reconciled(outcome.result, endedMs - startedMs);
      if (endedMs > turnEndsMs) {
        await nextTurn();
        turnEndsMs = clock.monotonicMs() + TURN_MS;
      }
    }
  }

  return {
    start() {
      if (workers !== undefined) return;
      for (const key of reconciler.keys()) queue.add(key);
      workers = Array.from({ length: reconciler.concurrency }, () => work());
      log.info({ workers: workers.length }, 'controller started');
    },
    async stop() {
      await queue.shutDown();
      await Promise.all(workers ?? []);
    },
    isBusy: () => queue.depth() > reconciler.concurrency,
    enqueue(key) {
      if (workers !== undefined) queue.add(key);
    },
    enqueueAfter(key, delayMs) {
      if (workers !== undefined) queue.addAfter(key, delayMs);
    },
  };
}

/** @throws the first failure, once all changes that do not depend on it have been tried. */
async function applyAll(applier: Applier, changes: readonly Change[]): Promise<void> {
  const failures: unknown[] = [];
  for (const change of changes) {
    try {
      await applier.apply(change);
    } catch (error) {
      const isIndependent = 'independent' in change && change.independent;
      // Without an API server every other attempt would only cost time.
      if (!isIndependent || error instanceof KubeUnreachableError) throw error;
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

function logError(log: Logger, key: string, err: unknown): void {
  const entry = { err, key, reconcileId: randomUUID() };
  if (err instanceof TerminalError) log.error(entry, 'reconcile failed for good');
  else if (isUnavailable(err instanceof RefusedError ? err.cause : err))
    log.warn(entry, 'reconcile failed: the API server is not available');
  else log.error(entry, 'reconcile failed');
}
