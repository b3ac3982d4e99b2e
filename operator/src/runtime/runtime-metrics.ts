import type { WorkQueueMetrics } from '@rollcall/platform/work/workqueue.ts';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** How a reconcile ended, in controller-runtime's words. */
type ReconcileResult = 'success' | 'error' | 'requeue' | 'requeue_after';

/** Metrics of one controller. */
export interface ControllerMetrics {
  reconciled(result: ReconcileResult, tookMs: number): void;
  terminalError(): void;
  /** @param change +1 when a worker begins a key, -1 when it is done. */
  activeWorkers(change: 1 | -1): void;
  readonly queue: WorkQueueMetrics;
  /**
   * @param read called when metrics are scraped: for how long each key that is being worked on has
   * been, in ms.
   */
  unfinished(read: () => readonly number[]): void;
}

/**
 * The operator's metrics under the names and labels of controller-runtime and client-go, so that
 * their dashboards fit.
 */
export interface RuntimeMetrics {
  controller(name: string, maxConcurrentReconciles: number): ControllerMetrics;
  request(method: string, code: string, host: string): void;
  leader(lease: string, isLeader: boolean): void;
  eventDropped(): void;
  /** @param read called when metrics are scraped: how many Events wait to be sent. */
  eventsPending(read: () => number): void;
}

/** controller-runtime `pkg/internal/controller/metrics`. */
const RECONCILE_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2,
  2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
/** client-go `workqueue` metrics: powers of ten from 10 ns. */
const QUEUE_SECONDS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000];

export function createRuntimeMetrics(registry: Registry): RuntimeMetrics {
  const reconcile = reconcileMetrics(registry);
  const queue = queueMetrics(registry);
  const registers = [registry];
  const requests = new Counter({
    name: 'rest_client_requests_total',
    help: 'Number of HTTP requests, partitioned by status code, method, and host.',
    labelNames: ['code', 'method', 'host'],
    registers,
  });
  const leader = new Gauge({
    name: 'leader_election_master_status',
    help: '1 while this process is the leader, 0 while it is a standby.',
    labelNames: ['name'],
    registers,
  });
  const droppedEvents = new Counter({
    name: 'rollcall_events_dropped_total',
    help: 'Kubernetes Events not sent: over the limit of their object, or the queue was full, or sending failed.',
    registers,
  });
  return {
    controller: (name, maxConcurrentReconciles) => ({
      ...reconcile(name, maxConcurrentReconciles),
      ...queue(name),
    }),
    request: (method, code, host) => requests.inc({ code, method, host }),
    leader: (name, isLeader) => leader.set({ name }, isLeader ? 1 : 0),
    eventDropped: () => droppedEvents.inc(),
    eventsPending: (read) =>
      void new Gauge({
        name: 'rollcall_events_pending',
        help: 'Kubernetes Events that wait to be sent.',
        registers,
        collect() {
          this.set(read());
        },
      }),
  };
}

function reconcileMetrics(registry: Registry) {
  const registers = [registry];
  const total = new Counter({
    name: 'controller_runtime_reconcile_total',
    help: 'Total number of reconciliations per controller.',
    labelNames: ['controller', 'result'],
    registers,
  });
  const errors = new Counter({
    name: 'controller_runtime_reconcile_errors_total',
    help: 'Total number of reconciliation errors per controller.',
    labelNames: ['controller'],
    registers,
  });
  const terminalErrors = new Counter({
    name: 'controller_runtime_terminal_reconcile_errors_total',
    help: 'Total number of terminal reconciliation errors per controller.',
    labelNames: ['controller'],
    registers,
  });
  const seconds = new Histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'Length of time per reconciliation per controller.',
    labelNames: ['controller'],
    buckets: RECONCILE_SECONDS,
    registers,
  });
  const maxConcurrent = new Gauge({
    name: 'controller_runtime_max_concurrent_reconciles',
    help: 'Maximum number of concurrent reconciles per controller.',
    labelNames: ['controller'],
    registers,
  });
  const active = new Gauge({
    name: 'controller_runtime_active_workers',
    help: 'Number of currently used workers per controller.',
    labelNames: ['controller'],
    registers,
  });
  return (controller: string, maxConcurrentReconciles: number) => {
    const labels = { controller };
    maxConcurrent.set(labels, maxConcurrentReconciles);
    active.set(labels, 0);
    errors.inc(labels, 0);
    terminalErrors.inc(labels, 0);
    for (const result of ['success', 'error', 'requeue', 'requeue_after']) total.inc({ controller, result }, 0);
    return {
      reconciled(result: ReconcileResult, tookMs: number) {
        total.inc({ controller, result });
        if (result === 'error') errors.inc(labels);
        seconds.observe(labels, tookMs / 1000);
      },
      terminalError: () => terminalErrors.inc(labels),
      activeWorkers: (change: 1 | -1) => active.inc(labels, change),
    };
  };
}

function queueMetrics(registry: Registry) {
  const registers = [registry];
  const labelNames = ['name', 'controller'];
  const depth = new Gauge({ name: 'workqueue_depth', help: 'Current depth of workqueue.', labelNames, registers });
  const adds = new Counter({
    name: 'workqueue_adds_total',
    help: 'Total number of adds handled by workqueue.',
    labelNames,
    registers,
  });
  const queued = new Histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'How long in seconds an item stays in workqueue before being requested.',
    labelNames,
    buckets: QUEUE_SECONDS,
    registers,
  });
  const worked = new Histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'How long in seconds processing an item from workqueue takes.',
    labelNames,
    buckets: QUEUE_SECONDS,
    registers,
  });
  const retries = new Counter({
    name: 'workqueue_retries_total',
    help: 'Total number of retries handled by workqueue.',
    labelNames,
    registers,
  });
  const unfinished = unfinishedMetrics(registry);
  return (name: string) => {
    const labels = { name, controller: name };
    depth.set(labels, 0);
    adds.inc(labels, 0);
    retries.inc(labels, 0);
    return {
      queue: {
        depth: (size: number) => depth.set(labels, size),
        added: () => adds.inc(labels),
        started: (queuedMs: number) => queued.observe(labels, queuedMs / 1000),
        finished: (workedMs: number) => worked.observe(labels, workedMs / 1000),
        retried: () => retries.inc(labels),
      },
      unfinished: (read: () => readonly number[]) => void unfinished.set(name, read),
    };
  };
}

function unfinishedMetrics(registry: Registry): Map<string, () => readonly number[]> {
  const readers = new Map<string, () => readonly number[]>();
  const options = { labelNames: ['name', 'controller'], registers: [registry] };
  void new Gauge({
    ...options,
    name: 'workqueue_unfinished_work_seconds',
    help: 'How many seconds of work has been done that is in progress and has not been observed by work_duration.',
    collect() {
      for (const [name, read] of readers) {
        this.set({ name, controller: name }, read().reduce((sum, ms) => sum + ms, 0) / 1000);
      }
    },
  });
  void new Gauge({
    ...options,
    name: 'workqueue_longest_running_processor_seconds',
    help: 'How many seconds has the longest running processor for workqueue been running.',
    collect() {
      for (const [name, read] of readers) this.set({ name, controller: name }, Math.max(0, ...read()) / 1000);
    },
  });
  return readers;
}
