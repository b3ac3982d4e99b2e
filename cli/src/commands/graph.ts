import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { parseCount, printPage, printResult, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { exitCodes } from '../exit-codes.ts';
import { addGatewayOption, gatewayOf } from '../gateway.ts';
import {
  type CheckedSchema,
  type ExplainedOperation,
  formatCheck,
  formatExplanation,
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
import { addDocumentCommands } from './graph-documents.ts';

const PATH = '/federation/schemas';

interface Subgraphs {
  readonly schemas: readonly SubgraphRecord[];
}

interface Refreshed extends Subgraphs {
  readonly failed: readonly { readonly service: string; readonly code: string; readonly message: string }[];
}

interface GenerationPage {
  readonly generations: readonly GenerationRecord[];
  readonly pinned: number | null;
  readonly nextCursor: string | null;
}

interface OperationPage {
  readonly operations: readonly OperationRecord[];
  readonly nextCursor: string | null;
}

/** `rollcall graph` with what it shows, checks and changes. */
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
  addExplainCommand(graph, deps);
  addPinCommands(graph, deps);
  addRefreshCommand(graph, deps);
  addDocumentCommands(graph, deps);
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
    const body = await gatewayOf(this, deps).text({ method: 'GET', path: `${PATH}/supergraph` });
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
      asText: (generations) => formatGenerations(generations, deps.now(), body.pinned),
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

function addExplainCommand(graph: Command, deps: CliDeps): void {
  const command = graph
    .command('explain')
    .description('say how an operation would be carried out; exit code 1: it is refused');
  withExamples(
    addGatewayOption(command)
      .argument('<file>', 'the document')
      .option('--operation <name>', 'which operation of the document')
      .option('--variables <json>', 'values of its variables', parseVariables),
    ['rollcall graph explain query.graphql', `rollcall graph explain query.graphql --variables '{"id": "1"}'`],
  ).action(async function (this: Command, file: string) {
    const { operation: operationName, variables } = this.opts();
    const query = readText('<file>', resolve(deps.cwd, file));
    const body = await gatewayOf(this, deps).call<ExplainedOperation>({
      method: 'POST',
      path: `${PATH}/explain`,
      body: { query, operationName, variables },
    });
    printResult(this, deps, { body, asText: formatExplanation });
    if (body.cost === null) deps.exitWith(exitCodes.failed);
  });
}

function parseVariables(text: string): unknown {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed;
  } catch {
    // As for what is no object.
  }
  throw new InvalidArgumentError('must be a JSON object.');
}

function addPinCommands(graph: Command, deps: CliDeps): void {
  const path = `${PATH}/supergraph/pin`;
  const pin = graph.command('pin').description('put an earlier graph in force, until it is unpinned');
  withExamples(addGatewayOption(pin).argument('<graph>', 'its number in the history', parseCount), [
    'rollcall graph pin 41',
  ]).action(async function (this: Command, generation: number) {
    await gatewayOf(this, deps).text({ method: 'PUT', path, body: { generation } });
    deps.err(`Graph ${generation} is in force, whatever services change, until it is unpinned.\n`);
  });
  const unpin = graph.command('unpin').description('put the newest graph in force');
  withExamples(addGatewayOption(unpin), ['rollcall graph unpin']).action(async function (this: Command) {
    await gatewayOf(this, deps).text({ method: 'DELETE', path });
    deps.err('The newest graph is in force.\n');
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
