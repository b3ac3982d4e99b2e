import type { Clock } from '../clock.ts';
import type { Actor } from '../process/lifecycle.ts';
import type { Logger } from '../process/log.ts';
import type { TracingSettings } from './settings.ts';
import type { Tracer } from './tracer.ts';

export interface TracingDeps {
  /** Of the process. */
  readonly version: string;
  readonly log: Logger;
  readonly clock: Clock;
}

/**
 * Traces as a part of a process: to be stopped after everything that makes spans, for it sends the
 * last of them.
 */
export interface Tracing extends Actor {
  readonly tracer: Tracer;
}

/** @returns undefined where nothing is to be traced; nothing is loaded then. */
export async function createTracing(
  settings: TracingSettings | undefined,
  deps: TracingDeps,
): Promise<Tracing | undefined> {
  if (settings === undefined) return undefined;
  const { createSdkTracing } = await import('./sdk.ts');
  return createSdkTracing(settings, deps);
}
