import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import type { ServiceFilter } from '@rollcall/client/registry-types.ts';
import type { Command } from 'commander';
import { addFilterOptions, connectionOf, metadataOption, printResult, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { formatInstances, formatService, formatServices } from '../output/services.ts';

/** `rollcall services`, `rollcall get` and `rollcall instances`. */
export function addReadCommands(program: Command, deps: CliDeps): void {
  const list = addFilterOptions(program.command('services').description('list the registered services'))
    .option('--zone <zone>', 'only services with an instance there')
    .option('--healthy', 'only services with an instance that is well')
    .addOption(metadataOption('only services with an instance that has it'));
  withExamples(list, [
    'rollcall services',
    'rollcall services --capability grpc --prefix shop-',
    'rollcall services --healthy --zone eu-1a --metadata team=payments',
    "rollcall services -o json | jq -r '.services[].service_url'",
  ]).action(async function (this: Command) {
    const filter: ServiceFilter = this.opts();
    const body = await createRegistryClient(connectionOf(this, deps)).listServices(filter);
    if (body.total === 0) deps.err('No such services are registered.\n');
    const asText = () => (body.total === 0 ? '' : formatServices(body.services, deps.now()));
    printResult(this, deps, { body, asText });
  });

  withExamples(program.command('get').description('show one service').argument('<name>', 'name of the service'), [
    'rollcall get shop',
    'curl "$(rollcall get shop -o json | jq -r .service_url)/health"',
  ]).action(async function (this: Command, name: string) {
    const body = await createRegistryClient(connectionOf(this, deps)).getService(name);
    printResult(this, deps, { body, asText: (service) => formatService(service, deps.now()) });
  });

  withExamples(
    program
      .command('instances')
      .description('list the programs that are registered under a name')
      .argument('<name>', 'name of the service'),
    ['rollcall instances shop'],
  ).action(async function (this: Command, name: string) {
    const body = await createRegistryClient(connectionOf(this, deps)).listInstances(name);
    printResult(this, deps, { body, asText: ({ instances }) => formatInstances(instances, deps.now()) });
  });
}
