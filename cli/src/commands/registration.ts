import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import type { Capability } from '@rollcall/client/registry-types.ts';
import type { Command } from 'commander';
import { capabilitiesOption, connectionOf, instanceOption, printResult, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { printable } from '../output/text.ts';

interface InstanceChoice {
  readonly instanceId?: string;
}

const NO_ID = 'the one that has no id';

/** `rollcall register` and `unregister`: one call each. */
export function addRegistrationCommands(program: Command, deps: CliDeps): void {
  withExamples(
    program
      .command('register')
      .description('register a service, which then expires unless heartbeats come; see also: run')
      .argument('<name>', 'name of the service')
      .argument('<url>', 'where it can be reached')
      .addOption(capabilitiesOption())
      .addOption(instanceOption(NO_ID)),
    [
      'rollcall register shop http://10.0.0.7:8080',
      'rollcall register shop http://10.0.0.7:8080 --capability rest,grpc',
    ],
  ).action(async function (this: Command, name: string, url: string) {
    const { capability, instanceId }: { capability: Capability[] } & InstanceChoice = this.opts();
    const client = createRegistryClient(connectionOf(this, deps));
    const instance = instanceId === undefined ? {} : { instance_id: instanceId };
    const request = { service_name: name, ...instance, service_url: url, capabilities: capability };
    const body = await client.register(request);
    const asText = () => `'${printable(name)}' is registered as ${body.service_id} for ${body.ttl} s\n`;
    printResult(this, deps, { body, asText });
  });

  withExamples(
    program
      .command('unregister')
      .description('remove a service, or one of its programs')
      .argument('<name>', 'name of the service')
      .addOption(instanceOption(NO_ID)),
    ['rollcall unregister shop', 'rollcall unregister shop --instance-id shop-a'],
  ).action(async function (this: Command, name: string) {
    const { instanceId }: InstanceChoice = this.opts();
    const body = await createRegistryClient(connectionOf(this, deps)).unregister(name, { instanceId });
    printResult(this, deps, { body, asText: ({ message }) => `${printable(message)}\n` });
  });
}
