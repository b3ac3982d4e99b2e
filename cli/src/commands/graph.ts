import { resolve } from 'node:path';
import type { Command } from 'commander';
import { parseCount, printPage, printResult, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { exitCodes } from '../exit-codes.ts';
import { addGatewayOption, gatewayOf } from '../gateway.ts';
import {
  type CheckedSchema,
  formatCheck,
  formatGenerations,
  formatOperations,
  formatSdl,
  formatSubgraphs,
  type GenerationRecord,
  type OperationRecord,
  type SubgraphRecord,
} from '../output/graph.ts';
import { printable } from '../output/text.ts';
import { queryOf } from '../query.ts';
import { readText } from '../read-text.ts';

const PATH = '/federation/schemas';

interface Subgraphs {
  readonly schemas: readonly SubgraphRecord[];
}

interface Refreshed extends Subgraphs {
  readonly failed: readonly { readonly service: string; readonly code: string; readonly message: string }[];
}

interface GenerationPage {
  readonly generations: readonly GenerationRecord[];
  readonly nextCursor: string | null;
}

interface OperationPage {
  readonly operations: readonly OperationRecord[];
  readonly nextCursor: string | null;
}

/** `rollcall graph subgraphs`, `supergraph`, `history`, `check`, `usage` and `refresh`. */
export function addGraphCommands(program: Command, deps: CliDeps): void {
  const graph = withExamples(program.command('graph').description('show and check the graph of all services'), [
    'rollcall graph subgraphs',
    'rollcall graph check schema.graphql --service shop',
  ]);
  addSubgraphsCommand(graph, deps);
  addSupergraphCommand(graph, deps);
  addHistoryCommand(graph, deps);
  addCheckCommand(graph, deps);
  addUsageCommand(graph, deps);
  addRefreshCommand(graph, deps);
}

function addSubgraphsCommand(graph: Command, deps: CliDeps): void {
  const command = graph.command('subgraphs').description('list the services with GraphQL, and how they stand');
  withExamples(addGatewayOption(command), ['rollcall graph subgraphs']).action(async function (this: Command) {
    const body = await gatewayOf(this, deps).call<Subgraphs>({ method: 'GET', path: PATH });
    printSubgraphs(this, deps, body);
  });
}

function printSubgraphs(command: Command, deps: CliDeps, body: Subgraphs): void {
  if (body.schemas.length === 0) deps.err('There are no services with GraphQL.\n');
  const asText = ({ schemas }: Subgraphs) => (schemas.length === 0 ? '' : formatSubgraphs(schemas, deps.now()));
  printResult(command, deps, { body, asText });
}

function addSupergraphCommand(graph: Command, deps: CliDeps): void {
  const command = graph.command('supergraph').description('print the SDL of the graph in force');
  withExamples(addGatewayOption(command), ['rollcall graph supergraph > supergraph.graphql']).action(async function (
    this: Command,
  ) {
    const body = await gatewayOf(this, deps).read(`${PATH}/supergraph`);
    printResult(this, deps, { body, asText: formatSdl });
  });
}

function addHistoryCommand(graph: Command, deps: CliDeps): void {
  const command = graph.command('history').description('list the graphs that have been in force, newest first');
  withExamples(addGatewayOption(command).option('--limit <count>', 'at most so many; 20 by default', parseCount), [
    'rollcall graph history --limit 5',
  ]).action(async function (this: Command) {
    const { limit } = this.opts();
    const path = `${PATH}/history${queryOf({ limit })}`;
    const body = await gatewayOf(this, deps).call<GenerationPage>({ method: 'GET', path });
    printPage(this, deps, {
      body,
      rows: body.generations,
      what: 'graphs',
      asText: (generations) => formatGenerations(generations, deps.now()),
    });
  });
}

function addCheckCommand(graph: Command, deps: CliDeps): void {
  const command = graph
    .command('check')
    .description('say whether a schema composes, and breaks no operation of clients; exit code 1 where it does not');
  withExamples(
    addGatewayOption(command)
      .argument('<file>', 'the SDL that the service is to have')
      .requiredOption('--service <name>', 'the service'),
    ['rollcall graph check schema.graphql --service shop'],
  ).action(async function (this: Command, file: string) {
    const { service } = this.opts();
    const schema = readText('<file>', resolve(deps.cwd, file));
    const body = await gatewayOf(this, deps).call<CheckedSchema>({
      method: 'POST',
      path: `${PATH}/check`,
      body: { service, schema },
    });
    printResult(this, deps, { body, asText: (checked) => formatCheck(checked, deps.now()) });
    if (body.composition.errors.length > 0 || body.broken.length > 0) deps.exitWith(exitCodes.failed);
  });
}

function addUsageCommand(graph: Command, deps: CliDeps): void {
  const command = graph.command('usage').description('list the operations that clients executed');
  withExamples(
    addGatewayOption(command)
      .argument('[coordinate]', 'only those that use it, such as User.name or Color.RED')
      .option('--limit <count>', 'at most so many; 20 by default', parseCount),
    ['rollcall graph usage User.name'],
  ).action(async function (this: Command, coordinate?: string) {
    const { limit } = this.opts();
    const path = `${PATH}/usage${queryOf({ coordinate, limit })}`;
    const body = await gatewayOf(this, deps).call<OperationPage>({ method: 'GET', path });
    printPage(this, deps, {
      body,
      rows: body.operations,
      what: 'operations',
      asText: (operations) => formatOperations(operations, deps.now()),
    });
  });
}

function addRefreshCommand(graph: Command, deps: CliDeps): void {
  const command = graph
    .command('refresh')
    .description('read all schemas anew; exit code 1 where one could not be read');
  withExamples(addGatewayOption(command), ['rollcall graph refresh']).action(async function (this: Command) {
    const body = await gatewayOf(this, deps).call<Refreshed>({ method: 'POST', path: `${PATH}/refresh` });
    printSubgraphs(this, deps, body);
    for (const { service, code, message } of body.failed)
      deps.err(`${printable(`${service}: ${message} (${code})`)}\n`);
    if (body.failed.length > 0) deps.exitWith(exitCodes.failed);
  });
}
