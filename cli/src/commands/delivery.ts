import { type Strategy, strategies } from '@rollcall/client/job-types.ts';
import { createRegistryClient, type RegistryClient } from '@rollcall/client/registry-client.ts';
import type { AcceptedJob, DeployRequest, RollbackRequest } from '@rollcall/client/registry-types.ts';
import { type Command, Option } from 'commander';
import { connectionOf, printResult, wantsJson, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { UsageError } from '../exit-codes.ts';
import { printable } from '../output/text.ts';
import { addSecretOption, secretOf } from '../secret.ts';
import { addWaitOptions, waitForJob, wantsToWait } from '../wait-for-job.ts';

interface DeployOptions {
  readonly image?: string;
  readonly binary?: string;
  readonly checksum?: string;
  readonly strategy?: Strategy;
}

interface RollbackOptions {
  readonly strategy?: Strategy;
  readonly now?: boolean;
}

function strategyOption(): Option {
  return new Option('--strategy <strategy>', "how traffic is moved; else as the service's policy says").choices(
    strategies,
  );
}

/** `rollcall deploy` and `rollcall rollback`. */
export function addDeliveryCommands(program: Command, deps: CliDeps): void {
  addDeployCommand(program, deps);
  addRollbackCommand(program, deps);
}

function addDeployCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('deploy')
    .description('deploy a version of a service; prints the id of the job')
    .argument('<service>', 'name of the service')
    .argument('<version>', 'version that is to run')
    .addOption(new Option('--image <reference>', 'container image to run').conflicts('binary'))
    .option('--binary <url>', 'https URL of a file to run')
    .option('--checksum <digest>', 'sha256:<hex> or sha512:<hex> of it; required for a binary')
    .addOption(strategyOption());
  addWaitOptions(
    withExamples(addSecretOption(command), [
      'rollcall deploy shop 1.4.0 --image registry.example/shop:1.4.0',
      'rollcall deploy shop 1.4.0 --image registry.example/shop:1.4.0 --strategy canary --wait --timeout 900',
      'JOB=$(rollcall deploy shop 1.4.0 --binary https://files.example/shop --checksum sha256:9f86...)',
    ]),
  ).action(async function (this: Command, service: string, version: string) {
    const isWaiting = wantsToWait(this);
    const options: DeployOptions = this.opts();
    const request: DeployRequest = {
      service_name: service,
      version,
      ...artifactOf(options),
      ...(options.strategy === undefined ? {} : { strategy: options.strategy }),
    };
    const secret = secretOf(this, deps);
    const client = createRegistryClient(connectionOf(this, deps));
    const body = await client.deploy(request, { secret });
    await tellAccepted(this, deps, { body, client, isWaiting });
  });
}

function artifactOf({ image, binary, checksum }: DeployOptions): Partial<DeployRequest> {
  const url = image ?? binary;
  if (url === undefined) throw new UsageError('--image or --binary is needed');
  const artifact = { artifact_url: url, artifact_type: image === undefined ? 'binary' : 'image' } as const;
  return checksum === undefined ? artifact : { ...artifact, checksum };
}

function addRollbackCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('rollback')
    .description('roll a service back to a version that was announced or deployed before; prints the id of the job')
    .argument('<service>', 'name of the service')
    .argument('<version>', 'version to return to; see: history')
    .addOption(strategyOption())
    .option('--now', 'undo the job that runs, cancel waiting jobs, and roll all pods at once');
  addWaitOptions(
    withExamples(addSecretOption(command), [
      'rollcall rollback shop 1.3.0',
      'rollcall rollback shop 1.3.0 --now --wait',
      'rollcall rollback shop 1.3.0 --strategy rolling',
    ]),
  ).action(async function (this: Command, service: string, version: string) {
    const isWaiting = wantsToWait(this);
    const secret = secretOf(this, deps);
    const client = createRegistryClient(connectionOf(this, deps));
    const { strategy, now = false }: RollbackOptions = this.opts();
    const request: RollbackRequest = {
      service_name: service,
      version,
      ...(strategy === undefined ? {} : { strategy }),
      ...(now ? { immediate: true } : {}),
    };
    const body = await client.rollBack(request, { secret });
    await tellAccepted(this, deps, { body, client, isWaiting });
  });
}

interface Acceptance {
  readonly body: AcceptedJob;
  readonly client: RegistryClient;
  readonly isWaiting: boolean;
}

/**
 * The id is all that standard output gets, so that a pipeline can keep it. With `-o json --wait`
 * every record holds it.
 */
async function tellAccepted(command: Command, deps: CliDeps, { body, client, isWaiting }: Acceptance): Promise<void> {
  const isJson = wantsJson(command);
  if (!isJson || !isWaiting) printResult(command, deps, { body, asText: ({ job_id }) => `${printable(job_id)}\n` });
  if (!isJson) deps.err(`rollcall: ${printable(body.message)}\n`);
  if (isWaiting) await waitForJob(command, deps, { client, jobId: body.job_id, wanted: 'Succeeded' });
}
