import { createRegistryClient, type RegistryClient } from '@rollcall/client/registry-client.ts';
import { RegistryError } from '@rollcall/client/registry-error.ts';
import type { Capability, InstanceFacts, RemovedService } from '@rollcall/client/registry-types.ts';
import { type Command, Option } from 'commander';
import { addCheckOptions, type CheckChoice, checkOf } from '../check-options.ts';
import {
  addFactOptions,
  capabilitiesOption,
  connectionOf,
  factsOf,
  instanceOption,
  printResult,
  withExamples,
} from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { printable } from '../output/text.ts';

interface InstanceChoice {
  readonly instanceId?: string;
}

interface RegisterChoice extends InstanceChoice, InstanceFacts, CheckChoice {
  readonly capability: readonly Capability[];
}

const NO_ID = 'the one that has no id';

/** `rollcall register` and `unregister`: one call each. */
export function addRegistrationCommands(program: Command, deps: CliDeps): void {
  withExamples(
    addCheckOptions(
      addFactOptions(
        program
          .command('register')
          .description('register a service, which then expires unless heartbeats come; see also: run')
          .argument('<name>', 'name of the service')
          .argument('<url>', 'where it can be reached')
          .addOption(capabilitiesOption())
          .addOption(instanceOption(NO_ID)),
      ),
    ),
    [
      'rollcall register shop http://10.0.0.7:8080',
      'rollcall register shop http://10.0.0.7:8080 --capability rest,grpc',
      'rollcall register shop http://10.0.0.7:8080 --check-http /health',
      'rollcall register shop http://10.0.0.7:8080 --instance-id shop-a --zone eu-1a --weight 50',
    ],
  ).action(async function (this: Command, name: string, url: string) {
    const { capability: capabilities, instanceId, ...said }: RegisterChoice = this.opts();
    const client = createRegistryClient(connectionOf(this, deps));
    const instance = instanceId === undefined ? {} : { instance_id: instanceId };
    const check = checkOf(said);
    const facts = { ...factsOf(said, deps), ...(check === undefined ? {} : { check }) };
    const request = { service_name: name, ...instance, service_url: url, capabilities, ...facts };
    const body = await client.register(request);
    const asText = () => `'${printable(name)}' is registered as ${body.service_id} for ${body.ttl} s\n`;
    printResult(this, deps, { body, asText });
  });

  withExamples(
    program
      .command('unregister')
      .description('remove a service, or one of its programs')
      .argument('<name>', 'name of the service')
      .addOption(instanceOption(NO_ID))
      .addOption(new Option('--all', 'all programs of the name').conflicts('instanceId')),
    ['rollcall unregister shop', 'rollcall unregister shop --instance-id shop-a', 'rollcall unregister shop --all'],
  ).action(async function (this: Command, name: string) {
    const { instanceId, all = false }: InstanceChoice & { readonly all?: boolean } = this.opts();
    const client = createRegistryClient(connectionOf(this, deps));
    const body = all ? await unregisterAll(client, name) : await client.unregister(name, { instanceId });
    printResult(this, deps, { body, asText: ({ message }) => `${printable(message)}\n` });
  });
}

/** One after the other, those that begin meanwhile not: they are of programs that live. */
async function unregisterAll(client: RegistryClient, name: string): Promise<RemovedService> {
  const { instances } = await client.listInstances(name);
  for (const { instance_id: instanceId } of instances) {
    await client.unregister(name, { instanceId }).catch(unlessGone);
  }
  return { service_name: name, message: `All ${instances.length} instances of '${name}' were removed` };
}

/** It has ended by itself. */
function unlessGone(error: unknown): void {
  if (!(error instanceof RegistryError) || error.status !== 404) throw error;
}
