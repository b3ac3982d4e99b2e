import { ownZone } from '@rollcall/client/own-zone.ts';
import { projectedToken } from '@rollcall/client/projected-token.ts';
import { type Capability, capabilities, type InstanceFacts } from '@rollcall/client/registry-types.ts';
import { createServers } from '@rollcall/client/servers.ts';
import { type ConnectionOptions, checkToken } from '@rollcall/client/transport.ts';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { CliDeps } from './deps.ts';
import { UsageError } from './exit-codes.ts';
import { chooseServer, type ServerChoice } from './settings.ts';

/** Of one page of communication and payment. */
const MOST_ROWS = 100;

interface GlobalOptions {
  readonly server?: string;
  readonly token?: string;
  readonly output: 'table' | 'json';
}

/** Options that every command understands, before or after its name. */
export function addGlobalOptions(program: Command): Command {
  return program
    .option('--server <url>', 'registry to ask, several separated by commas (variable ROLLCALL_SERVER)')
    .option('--token <token>', 'bearer token; better kept in the variable ROLLCALL_TOKEN')
    .addOption(new Option('-o, --output <format>', 'what to print').choices(['table', 'json']).default('table'));
}

/** @throws UsageError where no usable registry is named. */
export function serverOf(command: Command, { env, cwd }: CliDeps): ServerChoice {
  const { server }: GlobalOptions = command.optsWithGlobals();
  const choice = chooseServer({ option: server, variable: env['ROLLCALL_SERVER'], cwd });
  asUsage(choice.source, () => createServers(choice.servers));
  return choice;
}

/**
 * How this command is to reach the registry.
 *
 * @throws UsageError where the registry's URL or the token is unusable.
 */
export function connectionOf(command: Command, deps: CliDeps): ConnectionOptions {
  const options: GlobalOptions = command.optsWithGlobals();
  const { servers } = serverOf(command, deps);
  const { token = deps.env['ROLLCALL_TOKEN'] ?? '' } = options;
  if (token === '') return { servers, token: projectedToken(deps.env) };
  return {
    servers,
    token: asUsage(options.token === undefined ? 'ROLLCALL_TOKEN' : '--token', () => checkToken(token)),
  };
}

/** What the client library refuses was wrong in the option or variable of this name. */
function asUsage<Checked>(name: string, check: () => Checked): Checked {
  try {
    return check();
  } catch (error) {
    throw new UsageError(`${name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

export function wantsJson(command: Command): boolean {
  const { output }: GlobalOptions = command.optsWithGlobals();
  return output === 'json';
}

/** Prints the API's body as it is, or what `asText` makes of it for people. */
export function printResult<Body>(
  command: Command,
  deps: CliDeps,
  { body, asText }: { readonly body: Body; readonly asText: (body: Body) => string },
): void {
  deps.out(wantsJson(command) ? `${JSON.stringify(body, undefined, 2)}\n` : asText(body));
}

interface Page<Row, Body> {
  readonly body: Body;
  readonly rows: readonly Row[];
  /** What they are, such as `payments`. */
  readonly what: string;
  readonly asText: (rows: readonly Row[]) => string;
}

/** Prints a page of a list that begins with the newest, and says where there is none, or more. */
export function printPage<Row, Body extends { readonly nextCursor: string | null }>(
  command: Command,
  deps: CliDeps,
  { body, rows, what, asText }: Page<Row, Body>,
): void {
  if (rows.length === 0) deps.err(`There are no such ${what}.\n`);
  printResult(command, deps, { body, asText: () => (rows.length === 0 ? '' : asText(rows)) });
  // In JSON the cursor says it.
  if (body.nextCursor !== null && !wantsJson(command))
    deps.err(`There are more ${what}, which are older: --limit shows up to ${MOST_ROWS}.\n`);
}

/** `--capability` of a service: may be repeated, or hold several separated by commas. */
export function capabilitiesOption(): Option {
  return new Option('--capability <capability>', `what the service speaks: ${capabilities.join(', ')}; repeatable`)
    .default([] satisfies Capability[], 'none')
    .argParser((text: string, previous: Capability[]) => [...previous, ...text.split(',').map(parseCapability)]);
}

function parseCapability(text: string): Capability {
  const known = capabilities.find((capability) => capability === text);
  if (known === undefined) throw new InvalidArgumentError(`Allowed: ${capabilities.join(', ')}.`);
  return known;
}

/** `--instance-id`: which of several programs of a name. @param otherwise what it is where it is not given. */
export function instanceOption(otherwise: string): Option {
  return new Option('--instance-id <id>', `which of the programs of this name; default: ${otherwise}`);
}

/** Filters of what to list: `--capability`, `--prefix`. */
export function addFilterOptions(command: Command): Command {
  return command
    .addOption(new Option('--capability <capability>', 'only services that speak it').choices(capabilities))
    .option('--prefix <prefix>', 'only services whose name begins with it');
}

/** What others choose instances by: `--zone`, `--weight`, `--metadata`. */
export function addFactOptions(command: Command): Command {
  const share = 'its share of the requests, compared with others: 1 to 1000; default: 100';
  return command
    .option('--zone <zone>', 'where it runs (variable ROLLCALL_ZONE)')
    .addOption(new Option('--weight <weight>', share).argParser(parseCount))
    .addOption(metadataOption('what others may choose it by'));
}

/** What {@link addFactOptions} were given, with the zone of the environment. */
export function factsOf({ zone, weight, metadata }: InstanceFacts, { env }: Pick<CliDeps, 'env'>): InstanceFacts {
  return {
    ...(zone === undefined ? ownZone(env) : { zone }),
    ...(weight === undefined ? {} : { weight }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

/** `--metadata key=value`, repeatable. */
export function metadataOption(description: string): Option {
  return new Option('--metadata <key=value>', `${description}; repeatable`).argParser(
    (text: string, previous: Readonly<Record<string, string>> | undefined) => {
      const at = text.indexOf('=');
      if (at < 1) throw new InvalidArgumentError('It must be key=value.');
      return { ...previous, [text.slice(0, at)]: text.slice(at + 1) };
    },
  );
}

/** Parses an option's positive whole number. */
export function parseCount(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(count) || count < 1) {
    throw new InvalidArgumentError('It must be a whole number of at least 1.');
  }
  return count;
}

/** Appends examples to a command's help. */
export function withExamples(command: Command, examples: readonly string[]): Command {
  return command.addHelpText('after', `\nExamples:\n${examples.map((example) => `  $ ${example}`).join('\n')}`);
}
