import type { JobPhase, JobRecord } from '@rollcall/client/job-types.ts';
import type { RegistryClient } from '@rollcall/client/registry-client.ts';
import type { Command } from 'commander';
import { parseCount, wantsJson } from './command.ts';
import type { CliDeps } from './deps.ts';
import { exitCodes, JobFailure, UsageError } from './exit-codes.ts';
import { formatOutcome, formatProgress } from './output/jobs.ts';
import { printable } from './output/text.ts';

/** The longest that a timer can wait. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

interface WaitOptions {
  readonly wait?: boolean;
  readonly timeout?: number;
}

/** `--wait` and `--timeout`. */
export function addWaitOptions(command: Command): Command {
  return command
    .option('--wait', 'follow the job to its end; fails where it does not end well')
    .option('--timeout <seconds>', 'with --wait: give up waiting after so long; the job goes on', parseCount)
    .addHelpText('after', waitHelp);
}

const waitHelp = `
With --wait every change is a line on standard error; -o json prints the job's record at every change, one a line, on
standard output. Exit code 3: the time limit passed. Ctrl-C ends the command and leaves the job running: see abort.`;

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
 * Follows a job to its end and prints how it gets on.
 *
 * @throws JobFailure where it ends otherwise than wanted, or not in time; RegistryError where the
 * registry refuses to answer.
 */
export async function waitForJob(command: Command, deps: CliDeps, { client, jobId, wanted }: JobWait): Promise<void> {
  const { timeout }: WaitOptions = command.opts();
  const json = wantsJson(command);
  const note = (message: string) => deps.err(`rollcall: ${printable(message)}\n`);
  const limit = timeout === undefined ? undefined : AbortSignal.timeout(Math.min(timeout * 1000, LONGEST_TIMEOUT_MS));
  const records = client.followJob(jobId, {
    signal: limit,
    onDisconnected: ({ message }) => note(`${message}; trying to connect again, the job goes on`),
    onConnected: () => note('connected again'),
  });
  const print = json ? (job: JobRecord) => deps.out(`${JSON.stringify(job)}\n`) : progressLines(deps);
  let last: JobRecord | undefined;
  try {
    for await (const record of records) {
      last = record;
      print(record);
    }
  } catch (error) {
    throw limit?.aborted === true ? unfinished(jobId) : error;
  }
  if (last === undefined) throw new TypeError('a job that is followed to its end has an end');
  if (last.phase !== wanted) throw new JobFailure(formatOutcome(last), exitCodes.failed);
  if (!json) note(formatOutcome(last));
}

/** Only what people can see is a change. On standard error: standard output has the job's id. */
function progressLines({ err, now }: CliDeps): (job: JobRecord) => void {
  let last = '';
  return (job) => {
    const content = formatProgress(job, '');
    if (content !== last) err(formatProgress(job, now().toTimeString().slice(0, 8)));
    last = content;
  };
}

function unfinished(jobId: string): JobFailure {
  const id = printable(jobId);
  const hints = `'rollcall job ${id} --wait' follows it, 'rollcall abort ${id}' returns to the old version`;
  return new JobFailure(`the job has not ended in time and goes on: ${hints}`, exitCodes.timedOut);
}
