import { sleep } from '../retry.ts';
import type { Logger } from './log.ts';

/** A part of a process that is started and stopped as a whole. */
export interface Actor {
  readonly name: string;
  /** Resolves once the actor works; a rejection stops the process. */
  start(): Promise<void>;
  /** Resolves once nothing of the actor is left running. Called in reverse order of start. */
  stop(): Promise<void>;
  /** Rejects when a started actor can no longer do its work. */
  readonly failed?: Promise<never>;
}

export interface ActorOptions {
  readonly log: Logger;
  /** Resolves when the process is asked to stop (a signal). */
  readonly stopRequested: Promise<string>;
  /** All actors together get this long to stop. */
  readonly graceMs: number;
  /** Called once every actor has started. */
  readonly onReady?: () => void;
  /** Called before the first actor is stopped, so that readiness can say no. */
  readonly onStopping?: () => void;
  /**
   * Whether a failure forbids to stop in order, because whatever the actors still do is wrong:
   * return at once.
   */
  readonly mustAbandon?: (failure: unknown) => boolean;
}

/**
 * Starts the actors in order and keeps them until a stop is requested or one of them fails; then
 * stops in reverse what had been started, within the grace.
 *
 * @returns the process' exit code: 0 after a requested stop, 1 after a failure or an overrun grace.
 */
export async function runActors(actors: readonly Actor[], options: ActorOptions): Promise<number> {
  const { log, stopRequested } = options;
  const started: Actor[] = [];
  const failures: Promise<never>[] = [];
  let exitCode = 0;
  try {
    for (const actor of actors) {
      started.push(actor);
      if (actor.failed !== undefined) failures.push(actor.failed);
      const outcome = await Promise.race([actor.start(), stopRequested, ...failures]);
      if (outcome !== undefined) return await stopAll(started, options, 0);
      log.debug({ actor: actor.name }, 'actor started');
    }
    options.onReady?.();
    const reason = await Promise.race([stopRequested, ...failures]);
    log.info({ reason }, 'stopping');
  } catch (err) {
    exitCode = 1;
    log.fatal({ err }, 'an actor failed');
    if (options.mustAbandon?.(err) === true) return exitCode;
  }
  return stopAll(started, options, exitCode);
}

async function stopAll(started: readonly Actor[], options: ActorOptions, exitCode: number): Promise<number> {
  options.onStopping?.();
  const deadline = new AbortController();
  const overrun = sleep(options.graceMs, deadline.signal);
  for (const actor of started.toReversed()) {
    const stopped = actor.stop().then(
      () => true,
      (err: unknown) => {
        options.log.error({ err, actor: actor.name }, 'actor did not stop cleanly');
        return true;
      },
    );
    const inTime = await Promise.race([stopped, overrun.then(() => false)]);
    if (!inTime) {
      options.log.error({ actor: actor.name }, 'actor did not stop in time');
      return 1;
    }
  }
  deadline.abort();
  return exitCode;
}

/**
 * Resolves with the name of the first SIGINT or SIGTERM. Later ones change nothing: stopping has a
 * deadline anyway, and whoever repeats the signal must not cut off what is still being answered and
 * written.
 */
export function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve(signal));
  });
}
