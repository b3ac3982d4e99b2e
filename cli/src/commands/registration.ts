import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import type { Capability } from '@rollcall/client/registry-types.ts';
import type { Command } from 'commander';
import { capabilitiesOption, connectionOf, printResult, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { printable } from '../output/text.ts';

/** `rollcall register` and `unregister`: one call each. */
export function addRegistrationCommands(program: Command, deps: CliDeps): void {
  withExamples(
    program
      .command('register')
      .description('register a service, which then expires unless heartbeats come; see also: run')
      .argument('<name>', 'name of the service')
      .argument('<url>', 'where it can be reached')
      .addOption(capabilitiesOption()),
    [
      'rollcall register shop http://10.0.0.7:8080',
      'rollcall register shop http://10.0.0.7:8080 --capability rest,grpc',
    ],
  ).action(async function (this: Command, name: string, url: string) {
    const { capability }: { capability: Capability[] } = this.opts();
    const client = createRegistryClient(connectionOf(this, deps));
    const body = await client.register({ service_name: name, service_url: url, capabilities: capability });
    const asText = () => `'${printable(name)}' is registered as ${body.service_id} for ${body.ttl} s\n`;
    printResult(this, deps, { body, asText });
  });

  withExamples(
    program.command('unregister').description('remove a service').argument('<name>', 'name of the service'),
    ['rollcall unregister shop'],
  ).action(async function (this: Command, name: string) {
    const body = await createRegistryClient(connectionOf(this, deps)).unregister(name);
    printResult(this, deps, { body, asText: ({ message }) => `${printable(message)}\n` });
  });
}
