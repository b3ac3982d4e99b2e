import type { JobPhase, JobRecord } from '@rollcall/client/job-types.ts';
import type { RegistryClient } from '@rollcall/client/registry-client.ts';
import type { Command } from 'commander';
import { exitCodeOfSignal } from './child.ts';
import { parseCount, wantsJson } from './command.ts';
import type { CliDeps } from './deps.ts';
import { exitCodes, JobFailure, UsageError } from './exit-codes.ts';
import { catchInterrupts, Interruption } from './interrupts.ts';
import { formatOutcome } from './output/jobs.ts';
import { printable } from './output/text.ts';
import { createProgressDisplay, type ProgressDisplay } from './progress.ts';

/** The longest that a timer can wait. */
const LONGEST_TIMEOUT_SECONDS = 2_147_483;

interface WaitOptions {
  readonly wait?: boolean;
  readonly timeout?: number;
}

/** `--wait` and `--timeout`. */
export function addWaitOptions(command: Command): Command {
  return command
    .option('--wait', 'follow the job to its end; fails where it does not end well')
    .option('--timeout <seconds>', 'with --wait: give up waiting after so long; the job goes on', parseTimeout)
    .addHelpText('after', waitHelp);
}

const waitHelp = `
With --wait progress is told on standard error: on a terminal as one live line, elsewhere as a line for every change;
-o json prints the job's record at every change, one a line, on standard output. Exit code 3: the time limit passed.
The first Ctrl-C says how to abort the job, the second one ends the command and leaves the job running.`;

function parseTimeout(text: string): number {
  return Math.min(parseCount(text), LONGEST_TIMEOUT_SECONDS);
}

/**
 * Whether `--wait` was given.
 *
 * @throws UsageError for `--timeout` without it.
 */
export function wantsToWait(command: Command): boolean {
  const { wait = false, timeout }: WaitOptions = command.opts();
  if (timeout !== undefined && !wait) throw new UsageError('--timeout is of use with --wait only');
  return wait;
}

export interface JobWait {
  readonly client: RegistryClient;
  readonly jobId: string;
  /** The phase that is a success; any other end is a failure. */
  readonly wanted: JobPhase;
}

/**
 * Follows a job to its end and shows how it gets on.
 *
 * @throws JobFailure where it ends otherwise than wanted, or is not waited for to its end;
 * RegistryError where the registry refuses to answer.
 */
export async function waitForJob(command: Command, deps: CliDeps, { client, jobId, wanted }: JobWait): Promise<void> {
  const { timeout }: WaitOptions = command.opts();
  const json = wantsJson(command);
  const display = createProgressDisplay(deps, { json });
  using interrupts = catchInterrupts(() => display.note(`the job goes on: ${abortHint(jobId)}; Ctrl-C again to quit`));
  using limit = startLimit(timeout);
  const signal = AbortSignal.any([interrupts.signal, limit.signal]);
  const job = await showProgress({ client, jobId, signal }, display)
    .catch((error: unknown) => {
      throw signal.aborted ? unfinished(jobId, signal.reason) : error;
    })
    .finally(() => display.close());
  if (job.phase !== wanted) {
    throw new JobFailure(formatOutcome(job), { error: job.reason ?? job.phase, exitCode: exitCodes.failed });
  }
  if (!json) deps.err(`rollcall: ${formatOutcome(job)}\n`);
}

function abortHint(jobId: string): string {
  return `'rollcall abort ${printable(jobId)}' returns to the old version`;
}

/** Why the job was not followed to its end, which it reaches without us. */
function unfinished(jobId: string, reason: unknown): JobFailure {
  const hints = `'rollcall job ${printable(jobId)} --wait' follows it, ${abortHint(jobId)}`;
  if (reason instanceof Interruption) {
    const exitCode = exitCodeOfSignal(reason.by);
    return new JobFailure(`the job goes on: ${hints}`, { error: 'Interrupted', exitCode });
  }
  const message = `the job has not ended in time and goes on: ${hints}`;
  return new JobFailure(message, { error: 'Timed out', exitCode: exitCodes.timedOut });
}

interface FollowedJob {
  readonly client: RegistryClient;
  readonly jobId: string;
  readonly signal: AbortSignal;
}

async function showProgress({ client, jobId, signal }: FollowedJob, display: ProgressDisplay): Promise<JobRecord> {
  let isLost = false;
  let last: JobRecord | undefined;
  const records = client.followJob(jobId, {
    signal,
    onDisconnected({ error }) {
      const message = printable(error instanceof Error ? error.message : String(error));
      if (!isLost) display.note(`${message}; trying to connect again, the job goes on`);
      isLost = true;
    },
    onConnected() {
      display.note('connected again');
      isLost = false;
    },
  });
  for await (const record of records) {
    last = record;
    display.show(record);
  }
  if (last === undefined) throw new TypeError('a job that is followed to its end has an end');
  return last;
}

interface Limit extends Disposable {
  readonly signal: AbortSignal;
}

/** `AbortSignal.timeout` with an end, so that the process need not outlive what it waited for. */
function startLimit(seconds: number | undefined): Limit {
  const controller = new AbortController();
  const timer = seconds === undefined ? undefined : setTimeout(() => controller.abort(), seconds * 1000);
  return { signal: controller.signal, [Symbol.dispose]: () => clearTimeout(timer) };
}
