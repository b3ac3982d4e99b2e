import type { Registry } from 'prom-client';
import { type Clock, systemClock } from '../clock.ts';
import { errorMessage } from '../errors.ts';
import { tracingSettings } from '../tracing/settings.ts';
import type { Tracing } from '../tracing/tracer.ts';
import { adminServer } from './admin.ts';
import type { Environment } from './config.ts';
import { type Actor, type ActorOptions, runActors, stopSignal } from './lifecycle.ts';
import { createLogger, type LogDestination, type Logger } from './log.ts';
import { createMetrics } from './metrics.ts';
import type { ProcessConfig } from './settings.ts';
import { packageVersion } from './version.ts';

/**
 * All parts together get this long to stop. Less than the kubelet's grace, so that nothing is cut
 * off.
 */
const STOP_GRACE_MS = 25_000;

/** What is one process' own. */
export interface ProcessDefinition<Config extends ProcessConfig> {
  /** As the image's first argument. Logs and metrics carry it, and traces as `rollcall-<name>`. */
  readonly name: string;
  /** Of its package.json. */
  readonly manifest: URL;
  /** @throws Error for people when the settings are faulty. */
  readonly config: (environment: Environment) => Config;
  /** Whether it makes spans. */
  readonly isTraced: boolean;
  /** Makes the parts; none of them does anything yet. */
  readonly parts: (context: ProcessContext<Config>) => Promise<ProcessParts>;
}

/** What every process has. */
export interface ProcessContext<Config> {
  readonly config: Config;
  /** As whom it calls the API server, and traces: `rollcall-<name>`. */
  readonly component: string;
  /** Of its package. */
  readonly version: string;
  readonly environment: Environment;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
  /** Undefined: nothing is traced. */
  readonly tracing: Tracing | undefined;
  /** Whether all parts have started. */
  readonly hasStarted: () => boolean;
  /** Whether the process is about to end. */
  readonly isStopping: () => boolean;
}

export interface ProcessParts extends Pick<ActorOptions, 'onReady' | 'onStopping' | 'mustAbandon'> {
  /** Started in this order, after the admin port, and stopped in the other. */
  readonly actors: readonly Actor[];
  /**
   * What the process waits for before it may get traffic; by default, that all parts have started.
   */
  readonly waitsFor?: () => string | undefined;
}

/** What a process is given from outside. */
export interface ProcessHost {
  readonly environment: Environment;
  readonly clock: Clock;
  /** Resolves with the reason when the process is to stop. */
  readonly stopRequested: Promise<string>;
  /** Standard output unless given. */
  readonly logTo?: LogDestination;
}

/**
 * Runs a process until SIGINT, SIGTERM or a failure, and ends it with the exit code. Called by its
 * main file.
 */
export function runMain<Config extends ProcessConfig>(definition: ProcessDefinition<Config>): void {
  const host = { environment: process.env, clock: systemClock, stopRequested: stopSignal() };
  runProcess(definition, host).then(
    (exitCode) => process.exit(exitCode),
    (error: unknown) => {
      process.stderr.write(`${errorMessage(error)}\n`);
      process.exit(1);
    },
  );
}

/**
 * Runs a process until it is asked to stop, or fails.
 *
 * @returns its exit code; it has to end at once.
 * @throws Error for people when the settings are faulty.
 */
export async function runProcess<Config extends ProcessConfig>(
  definition: ProcessDefinition<Config>,
  { environment, clock, stopRequested, logTo }: ProcessHost,
): Promise<number> {
  const { name } = definition;
  const config = definition.config(environment);
  const component = `rollcall-${name}`;
  const traces = definition.isTraced ? tracingSettings(environment) : undefined;
  const log = createLogger(name, config.logLevel, logTo);
  const metrics = createMetrics(name);
  const version = packageVersion(definition.manifest);
  // Loaded only where requests are traced.
  const tracing =
    traces && (await import('../tracing/sdk.ts')).createSdkTracing(traces, { component, version, log, clock });
  let phase: 'starting' | 'running' | 'stopping' = 'starting';
  const parts = await definition.parts({
    config,
    component,
    version,
    environment,
    clock,
    log,
    metrics,
    tracing,
    hasStarted: () => phase !== 'starting',
    isStopping: () => phase === 'stopping',
  });
  const waitsFor = parts.waitsFor ?? (() => (phase === 'starting' ? 'starting' : undefined));
  const unready = () => (phase === 'stopping' ? 'stopping' : waitsFor());
  const actors = [
    // It sends the last spans, so it is stopped after all that makes some.
    ...(tracing === undefined ? [] : [tracing]),
    adminServer({ host: config.host, port: config.adminPort, metrics, unready }),
    ...parts.actors,
  ];
  return runActors(actors, {
    log,
    graceMs: STOP_GRACE_MS,
    stopRequested,
    onReady() {
      phase = 'running';
      parts.onReady?.();
    },
    onStopping() {
      phase = 'stopping';
      parts.onStopping?.();
    },
    ...(parts.mustAbandon === undefined ? {} : { mustAbandon: parts.mustAbandon }),
  });
}
