import { type Command, InvalidArgumentError, Option } from 'commander';
import { buildClient, clientIdFault, type Tier, tiers } from '../client-manifests.ts';
import { withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';

/** `rollcall clients create`. */
export function addClientCommands(program: Command, deps: CliDeps): void {
  const clients = withExamples(program.command('clients').description('make clients of the gateway'), [
    'rollcall clients create shop --tier Standard --scope orders:read | kubectl apply -f -',
  ]);

  withExamples(
    clients
      .command('create')
      .description('print an ApiClient and its Secret for kubectl apply, and on standard error the secret, once')
      .argument('<id>', 'the name it authenticates with', parseClientId)
      .addOption(new Option('--tier <tier>', 'decides its rate limit').choices(tiers).default('Free'))
      .option('--scope <scope>', 'what its tokens may be used for; repeatable', addScope, [])
      .option('-n, --namespace <namespace>', 'where the gateway reads clients; absent, that of kubectl'),
    [
      'rollcall clients create shop | kubectl apply -n rollcall-clients -f -',
      'rollcall clients create ci --tier Premium --scope "*" -n rollcall-clients | kubectl apply -f -',
    ],
  ).action(function (this: Command, clientId: string) {
    const { tier, scope, namespace }: { tier: Tier; scope: readonly string[]; namespace?: string } = this.opts();
    const { secret, list } = buildClient({ clientId, tier, scopes: scope, namespace });
    deps.out(`${JSON.stringify(list, undefined, 2)}\n`);
    deps.err(`client id: ${clientId}\nsecret:    ${secret}\nIt is kept nowhere: only its hash goes into the Secret.\n`);
  });
}

function parseClientId(text: string): string {
  const fault = clientIdFault(text);
  if (fault !== undefined) throw new InvalidArgumentError(`It ${fault}.`);
  return text;
}

function addScope(text: string, previous: readonly string[]): readonly string[] {
  if (!/^[!#-[\]-~]{1,128}$/.test(text))
    throw new InvalidArgumentError('It must be printable without spaces and quotes.');
  return [...new Set([...previous, text])];
}
