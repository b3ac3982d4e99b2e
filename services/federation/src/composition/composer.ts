import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { errorMessage } from '@rollcall/platform/errors.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { FindBreaks } from '../domain/schemas.ts';
import { type Contracts, type GraphSource, readGraph } from '../execution/graph-source.ts';
import { type PlannerSource, plannerSource } from '../execution/planner-source.ts';
import { findBreaks } from '../usage/breaks.ts';
import { type Composition, compose, LIMIT_CODE, type SubgraphSource } from './compose.ts';
import { printIntrospection } from './print-introspection.ts';
import { createTaskWatch } from './task-watch.ts';

/** Composes off the event loop. */
export interface Composer extends Actor {
  /** As `compose`. What takes too long or too much memory is the error COMPOSITION_LIMIT. */
  readonly compose: (subgraphs: readonly SubgraphSource[]) => Promise<Composition>;
  /**
   * The SDL of a service without `_service`.
   *
   * @param introspection the JSON of the answer to the introspection query.
   * @throws Error where it is none.
   */
  readonly sdlOf: (introspection: string) => Promise<string>;
  readonly breaks: FindBreaks;
  /** As `readGraph`. @throws LimitError. */
  readonly readGraph: (supergraph: string, contracts: Contracts) => Promise<GraphSource>;
  /** As `plannerSource`. @throws as `readGraph`. */
  readonly plannerSource: (supergraph: string) => Promise<PlannerSource>;
}

type Task =
  | { readonly kind: 'compose'; readonly subgraphs: readonly SubgraphSource[] }
  | { readonly kind: 'print'; readonly introspection: string }
  | { readonly kind: 'breaks'; readonly parameters: Parameters<FindBreaks> }
  | { readonly kind: 'read'; readonly supergraph: string; readonly contracts: Contracts }
  | { readonly kind: 'mend'; readonly supergraph: string };

/** Once it is loaded, the thread says so. */
const READY = 'ready';

type Outcome =
  | { readonly composition: Composition }
  | { readonly sdl: string }
  | { readonly breaks: ReturnType<typeof findBreaks> }
  | { readonly source: GraphSource }
  | { readonly mended: PlannerSource }
  | { readonly refusal: string };

/** Marks the thread: tests may run in threads of their own. */
const ROLE = 'rollcall-composer';
/** Of work. 20 subgraphs of 500 types take 2 s. */
const TIME_LIMIT_MS = 20_000;
const LIMITS = { maxOldGenerationSizeMb: 512 };
/** Without a task for so long, the thread is ended: it has kept what its largest task took. */
const IDLE_MS = 5000;

/** The thread ran out of time or of memory, and is gone. */
export class LimitError extends Error {}

/** @param timeLimitMs for one task; 20 s when absent. @param idleMs of the thread, until it ends; 5 s when absent. */
export function createComposer(timeLimitMs = TIME_LIMIT_MS, idleMs = IDLE_MS): Composer {
  const thread = createThread(timeLimitMs, idleMs);

  /** @param atLimit what it comes to where the task takes too long or too much memory. */
  async function unlessOverLimit<T>(work: Promise<T>, atLimit: (error: LimitError) => T): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof LimitError) || thread.isStopped()) throw error;
      return atLimit(error);
    }
  }

  return {
    name: 'composer',
    start: async () => {},
    stop: () => thread.stop(),
    compose(subgraphs) {
      const composition = thread.run({ kind: 'compose', subgraphs }).then((outcome) => {
        if ('composition' in outcome) return outcome.composition;
        throw new Error('The thread did not compose');
      });
      return unlessOverLimit<Composition>(composition, ({ message }) => ({
        errors: [{ code: LIMIT_CODE, message: `The schemas cannot be composed: ${message}` }],
      }));
    },
    async sdlOf(introspection) {
      const outcome = await thread.run({ kind: 'print', introspection });
      if ('sdl' in outcome) return outcome.sdl;
      throw new Error('refusal' in outcome ? outcome.refusal : 'The thread did not print');
    },
    async readGraph(supergraph, contracts) {
      const outcome = await thread.run({ kind: 'read', supergraph, contracts });
      if ('source' in outcome) return outcome.source;
      throw new Error('refusal' in outcome ? outcome.refusal : 'The thread did not read');
    },
    async plannerSource(supergraph) {
      const outcome = await thread.run({ kind: 'mend', supergraph });
      if ('mended' in outcome) return outcome.mended;
      throw new Error('refusal' in outcome ? outcome.refusal : 'The thread did not mend');
    },
    breaks(...parameters) {
      const breaks = thread.run({ kind: 'breaks', parameters }).then((outcome) => {
        if ('breaks' in outcome) return outcome.breaks;
        throw new Error('The thread did not compare');
      });
      return unlessOverLimit<Awaited<ReturnType<FindBreaks>>>(breaks, () => undefined);
    },
  };
}

interface Thread {
  run(task: Task): Promise<Outcome>;
  stop(): Promise<void>;
  isStopped(): boolean;
}

/**
 * One thread for all tasks, one after the other, made for the first, and ended when there are no more.
 * A task that is over its time or memory takes the thread with it, and the next one gets another.
 */
function createThread(timeLimitMs: number, idleMs: number): Thread {
  let worker: Worker | undefined;
  let current: PromiseWithResolvers<Outcome> | undefined;
  const watch = createTaskWatch(timeLimitMs, (thread, reason) => {
    fail(thread, reason);
    void thread.terminate();
  });
  let idle: NodeJS.Timeout | undefined;
  let isReady = false;
  let last: Promise<unknown> = Promise.resolve();
  let isStopped = false;

  function startThread(): Worker {
    const started = new Worker(new URL(import.meta.url), { workerData: ROLE, resourceLimits: LIMITS });
    isReady = false;
    started.on('message', (message: Outcome | typeof READY) => {
      // One that was given up may still have answered.
      if (worker !== started) return;
      if (message !== READY) {
        current?.resolve(message);
        return;
      }
      isReady = true;
      watch.working(started, undefined);
    });
    started.on('error', (error) => fail(started, errorMessage(error)));
    started.on('exit', () => fail(started, 'the thread ended'));
    return started;
  }

  function fail(thread: Worker, reason: string): void {
    if (worker !== thread) return;
    worker = undefined;
    current?.reject(new LimitError(reason));
  }

  async function run(task: Task): Promise<Outcome> {
    if (isStopped) throw new Error('The composer is stopped');
    clearTimeout(idle);
    const thread = (worker ??= startThread());
    const answer = Promise.withResolvers<Outcome>();
    current = answer;
    thread.ref();
    // The thread may end before anybody waits for it.
    answer.promise.catch(() => undefined);
    if (isReady) watch.working(thread, await thread.cpuUsage().catch(() => undefined));
    else watch.loading(thread);
    thread.postMessage(task);
    try {
      return await answer.promise;
    } finally {
      watch.stop();
      current = undefined;
      thread.unref();
      idle = setTimeout(endIdle, idleMs).unref();
    }
  }

  function endIdle(): void {
    const thread = worker;
    worker = undefined;
    void thread?.terminate();
  }

  return {
    run(task) {
      const turn = last.then(() => run(task));
      last = turn.catch(() => undefined);
      return turn;
    },
    async stop() {
      isStopped = true;
      clearTimeout(idle);
      await worker?.terminate();
    },
    isStopped: () => isStopped,
  };
}

/** What the thread does. */
function perform(task: Task): Outcome {
  if (task.kind === 'compose') return { composition: compose(task.subgraphs) };
  if (task.kind === 'breaks') return { breaks: findBreaks(...task.parameters) };
  try {
    if (task.kind === 'read') return { source: readGraph(task.supergraph, task.contracts) };
    if (task.kind === 'mend') return { mended: plannerSource(task.supergraph) };
    return { sdl: printIntrospection(task.introspection) };
  } catch (error) {
    return { refusal: errorMessage(error) };
  }
}

if (!isMainThread && workerData === ROLE) {
  parentPort?.postMessage(READY);
  parentPort?.on('message', (task: Task) => {
    parentPort?.postMessage(perform(task));
  });
}
