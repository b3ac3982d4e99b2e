import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import type { Command } from 'commander';
import { connectionOf, parseCount, printResult, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { formatHistory, formatServiceHistory, formatStatistics } from '../output/updates.ts';

const NONE = 'There are no such updates.\n';

/** `rollcall history` and `rollcall stats`. */
export function addUpdateCommands(program: Command, deps: CliDeps): void {
  withExamples(
    program
      .command('history')
      .description('list updates, newest first, of all services or of one')
      .argument('[name]', 'name of the service')
      .option('--limit <count>', 'at most so many', parseCount),
    ['rollcall history --limit 20', 'rollcall history shop', 'rollcall history shop -o json'],
  ).action(async function (this: Command, name: string | undefined) {
    const { limit }: { limit?: number } = this.opts();
    const client = createRegistryClient(connectionOf(this, deps));
    if (name === undefined) {
      const body = await client.history({ limit });
      if (body.history.length === 0) deps.err(NONE);
      printResult(this, deps, { body, asText: ({ history }) => formatHistory(history, deps.now()) });
    } else {
      const body = await client.serviceHistory(name, { limit });
      if (body.history.length === 0) deps.err(NONE);
      printResult(this, deps, { body, asText: ({ history }) => formatServiceHistory(history, deps.now()) });
    }
  });

  withExamples(program.command('stats').description('sum up the updates of all services'), [
    'rollcall stats',
    'rollcall stats -o json | jq .success_rate',
  ]).action(async function (this: Command) {
    const body = await createRegistryClient(connectionOf(this, deps)).statistics();
    printResult(this, deps, { body, asText: formatStatistics });
  });
}
