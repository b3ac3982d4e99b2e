import type { Registry } from 'prom-client';
import { instruments } from './instruments.ts';

/** controller-runtime `pkg/internal/controller/metrics`. */
const RECONCILE_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2,
  2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
/** client-go `workqueue` metrics: powers of ten from 10 ns. */
const QUEUE_SECONDS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000];

/** How a reconcile ended, in controller-runtime's words. */
type ReconcileResult = 'success' | 'error' | 'requeue' | 'requeue_after';

export type RuntimeMetrics = ReturnType<typeof createRuntimeMetrics>;

/**
 * The operator's metrics under the names and labels of controller-runtime and client-go, so that
 * their dashboards fit.
 */
export function createRuntimeMetrics(registry: Registry) {
  const { counter, gauge } = instruments(registry);
  const reconciles = reconcileMetrics(registry);
  const queues = queueMetrics(registry);
  const requestsBy = instruments(registry, 'code', 'method', 'host');
  const requests = requestsBy.counter('rest_client_requests_total', 'HTTP requests to the API server.');
  const leases = instruments(registry, 'name');
  const leader = leases.gauge('leader_election_master_status', '1: this process leads; 0: it is a standby.');
  const droppedEvents = counter(
    'rollcall_events_dropped_total',
    'Kubernetes Events not sent: over the limit of their object, or the queue was full, or sending failed.',
  );
  return {
    /** Metrics of one controller. */
    controller: (name: string, maxConcurrentReconciles: number) => ({
      ...reconciles(name, maxConcurrentReconciles),
      ...queues(name),
    }),
    request: (method: string, code: string, host: string) => requests.inc({ code, method, host }),
    leader: (lease: string, isLeader: boolean) => leader.set({ name: lease }, isLeader ? 1 : 0),
    eventDropped: () => droppedEvents.inc(),
    /** @param read how many Events wait to be sent. */
    eventsPending: (read: () => number) =>
      void gauge('rollcall_events_pending', 'Kubernetes Events that wait to be sent.', (all) => all.set(read())),
  };
}

function reconcileMetrics(registry: Registry) {
  const { counter, gauge, histogram } = instruments(registry, 'controller');
  const results = instruments(registry, 'controller', 'result');
  const total = results.counter('controller_runtime_reconcile_total', 'Reconciles by their results.');
  const errors = counter('controller_runtime_reconcile_errors_total', 'Reconciles that failed.');
  const terminal = counter('controller_runtime_terminal_reconcile_errors_total', 'Reconciles that failed for good.');
  const seconds = histogram('controller_runtime_reconcile_time_seconds', 'How long it takes.', RECONCILE_SECONDS);
  const most = gauge('controller_runtime_max_concurrent_reconciles', 'Most reconciles at once.');
  const active = gauge('controller_runtime_active_workers', 'Reconciles under way.');
  return (controller: string, maxConcurrentReconciles: number) => {
    const labels = { controller };
    most.set(labels, maxConcurrentReconciles);
    active.set(labels, 0);
    errors.inc(labels, 0);
    terminal.inc(labels, 0);
    for (const result of ['success', 'error', 'requeue', 'requeue_after']) total.inc({ controller, result }, 0);
    return {
      reconciled(result: ReconcileResult, tookMs: number): void {
        total.inc({ controller, result });
        if (result === 'error') errors.inc(labels);
        seconds.observe(labels, tookMs / 1000);
      },
      terminalError: () => terminal.inc(labels),
      /** @param change +1 when a worker begins a key, -1 when it is done. */
      activeWorkers: (change: 1 | -1) => active.inc(labels, change),
    };
  };
}

function queueMetrics(registry: Registry) {
  const { counter, gauge, histogram } = instruments(registry, 'name', 'controller');
  const depth = gauge('workqueue_depth', 'Keys that wait.');
  const adds = counter('workqueue_adds_total', 'Keys that were added.');
  const queued = histogram('workqueue_queue_duration_seconds', 'How long keys wait.', QUEUE_SECONDS);
  const worked = histogram('workqueue_work_duration_seconds', 'How long keys are worked on.', QUEUE_SECONDS);
  const retries = counter('workqueue_retries_total', 'Keys that are tried again.');
  /** For how long each key that is being worked on has been, in ms, by the name of the controller. */
  const unfinished = new Map<string, () => readonly number[]>();
  void gauge('workqueue_unfinished_work_seconds', 'Of all keys that are worked on, together.', (together) => {
    for (const [name, read] of unfinished) {
      together.set({ name, controller: name }, read().reduce((sum, ms) => sum + ms, 0) / 1000);
    }
  });
  void gauge('workqueue_longest_running_processor_seconds', 'Of the key that is worked on longest.', (longest) => {
    for (const [name, read] of unfinished) longest.set({ name, controller: name }, Math.max(0, ...read()) / 1000);
  });
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
      /** @param read for how long each key that is being worked on has been, in ms. */
      unfinished: (read: () => readonly number[]) => void unfinished.set(name, read),
    };
  };
}
