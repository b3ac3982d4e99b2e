import { setTimeout as sleep } from 'node:timers/promises';
import type { JobPhase, JobRecord } from '@rollcall/client/job-types.ts';
import type { RegistryClient } from '@rollcall/client/registry-client.ts';
import { RegistryError } from '@rollcall/client/registry-error.ts';
import type { Command } from 'commander';
import { wantsJson } from './command.ts';
import type { CliDeps } from './deps.ts';
import { changeTitles, formatChange } from './output/jobs.ts';
import { printable } from './output/text.ts';

/** How often the list is asked for. */
const PERIOD_MS = 2000;

export interface JobWatch {
  readonly client: RegistryClient;
  readonly service: string | undefined;
  readonly phase: JobPhase | undefined;
  readonly limit: number | undefined;
}

/**
 * Lists jobs, oldest first, then changed ones, until interrupted. A registry that fails later is
 * waited for.
 *
 * @throws RegistryError where the registry refuses, or does not answer the first time.
 */
export async function watchJobs(command: Command, deps: CliDeps, watch: JobWatch): Promise<never> {
  const { client, service, phase, limit } = watch;
  const format = wantsJson(command) ? (job: JobRecord) => `${JSON.stringify(job)}\n` : changeTable(deps);
  const contact = createContact(deps);
  const changes = createListChanges();
  for (; ; await sleep(PERIOD_MS)) {
    // Not filtered by phase there: that a job has left the phase is of interest too.
    const list = await client.listJobs({ service_name: service, limit }).catch((error: unknown) => contact.lost(error));
    if (list === undefined) continue;
    contact.made();
    for (const { job, previous } of changes.take(list.jobs)) {
      if (phase === undefined || job.phase === phase || previous?.phase === phase) deps.out(format(job));
    }
  }
}

function changeTable({ out, now }: CliDeps): (job: JobRecord) => string {
  out(changeTitles);
  return (job) => formatChange(job, now().toTimeString().slice(0, 8));
}

interface JobChange {
  readonly job: JobRecord;
  readonly previous: JobRecord | undefined;
}

/** Compares lists, newest first, with what was listed before. */
export function createListChanges() {
  const known = new Map<string, JobRecord>();
  return {
    /** The jobs that are new or say something else, oldest first. */
    take(jobs: readonly JobRecord[]): readonly JobChange[] {
      const changes = jobs
        .map((job) => ({ job, previous: known.get(job.job_id) }))
        .filter(({ job, previous }) => JSON.stringify(job) !== JSON.stringify(previous))
        .toReversed();
      known.clear();
      for (const job of jobs) known.set(job.job_id, job);
      return changes;
    },
  };
}

/** Of an outage it prints the beginning and the end. */
function createContact({ err }: CliDeps) {
  let wasMade = false;
  let isLost = false;
  return {
    made(): void {
      if (isLost) err('rollcall: connected again\n');
      wasMade = true;
      isLost = false;
    },
    /** @throws the error where waiting is of no use. */
    lost(error: unknown): undefined {
      if (!wasMade || !isPassing(error)) throw error;
      if (!isLost) err(`rollcall: ${printable(error.message)}; trying to connect again\n`);
      isLost = true;
    },
  };
}

/** No answer, or one that says that the registry cannot answer now. */
function isPassing(error: unknown): error is RegistryError {
  return error instanceof RegistryError && (error.status === undefined || error.status >= 500);
}
