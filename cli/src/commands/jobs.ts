import { type JobPhase, jobPhases } from '@rollcall/client/job-types.ts';
import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { type Command, Option } from 'commander';
import { connectionOf, parseCount, printResult, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { formatJob, formatJobs } from '../output/jobs.ts';
import { printable } from '../output/text.ts';
import { addSecretOption, secretOf } from '../secret.ts';
import { addWaitOptions, waitForJob, wantsToWait } from '../wait-for-job.ts';

interface ListOptions {
  readonly phase?: JobPhase;
  readonly limit?: number;
}

/** `rollcall jobs`, `job`, `promote` and `abort`. */
export function addJobCommands(program: Command, deps: CliDeps): void {
  addListCommand(program, deps);
  addShowCommand(program, deps);
  addSteeringCommand(program, deps, {
    name: 'promote',
    description: 'let a paused job go on with its next step',
    wanted: 'Succeeded',
  });
  addSteeringCommand(program, deps, {
    name: 'abort',
    description: 'stop a job and return all traffic to the old version; with --wait fails unless that is what happened',
    wanted: 'RolledBack',
  });
}

function addListCommand(program: Command, deps: CliDeps): void {
  withExamples(
    program
      .command('jobs')
      .description('list deploy and rollback jobs, newest first, of all services or of one')
      .argument('[service]', 'name of the service')
      .addOption(new Option('--phase <phase>', 'only jobs in it').choices(jobPhases))
      .option('--limit <count>', 'at most so many', parseCount),
    ['rollcall jobs', 'rollcall jobs shop --phase Failed'],
  ).action(async function (this: Command, service: string | undefined) {
    const { phase, limit }: ListOptions = this.opts();
    const client = createRegistryClient(connectionOf(this, deps));
    const body = await client.listJobs({ service_name: service, phase, limit });
    if (body.jobs.length === 0) deps.err('There are no such jobs.\n');
    printResult(this, deps, {
      body,
      asText: ({ jobs }) => (jobs.length === 0 ? '' : formatJobs(jobs, deps.now())),
    });
  });
}

function addShowCommand(program: Command, deps: CliDeps): void {
  const command = program.command('job').description('show one job').argument('<job>', 'id of the job');
  addWaitOptions(
    withExamples(command, [
      'rollcall job deploy-shop-1.4.0-1795257600',
      'rollcall job deploy-shop-1.4.0-1795257600 --wait',
    ]),
  ).action(async function (this: Command, jobId: string) {
    const isWaiting = wantsToWait(this);
    const client = createRegistryClient(connectionOf(this, deps));
    const body = await client.getJob(jobId);
    if (isWaiting) await waitForJob(this, deps, { client, jobId, wanted: 'Succeeded' });
    else printResult(this, deps, { body, asText: (job) => formatJob(job, deps.now()) });
  });
}

interface Steering {
  readonly name: 'promote' | 'abort';
  readonly description: string;
  /** How a job that obeys ends. */
  readonly wanted: JobPhase;
}

function addSteeringCommand(program: Command, deps: CliDeps, { name, description, wanted }: Steering): void {
  const command = program.command(name).description(description).argument('<job>', 'id of the job');
  addWaitOptions(
    withExamples(addSecretOption(command), [
      `rollcall ${name} deploy-shop-1.4.0-1795257600`,
      `rollcall ${name} deploy-shop-1.4.0-1795257600 --wait --timeout 60`,
    ]),
  ).action(async function (this: Command, jobId: string) {
    const isWaiting = wantsToWait(this);
    const secret = secretOf(this, deps);
    const client = createRegistryClient(connectionOf(this, deps));
    const body = await (name === 'promote' ? client.promoteJob : client.abortJob)(jobId, { secret });
    if (isWaiting) await waitForJob(this, deps, { client, jobId, wanted });
    else printResult(this, deps, { body, asText: ({ message }) => `${printable(message)}\n` });
  });
}
