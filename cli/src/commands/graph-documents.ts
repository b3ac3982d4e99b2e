import { resolve } from 'node:path';
import type { Command } from 'commander';
import { parseCount, printPage, printResult, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { UsageError } from '../exit-codes.ts';
import { addGatewayOption, gatewayOf } from '../gateway.ts';
import { batchesOf, readDocuments } from '../operation-documents.ts';
import { formatAge } from '../output/age.ts';
import { formatTable } from '../output/table.ts';
import { queryOf } from '../query.ts';

const PATH = '/federation/documents';

interface Published {
  readonly published: number;
  readonly known: number;
}

interface DocumentRecord {
  readonly id: string;
  readonly client: string;
  /** ISO 8601. */
  readonly createdAt: string;
}

interface DocumentPage {
  readonly documents: readonly DocumentRecord[];
  readonly nextCursor: string | null;
}

/** `rollcall graph publish` and `documents`. */
export function addDocumentCommands(graph: Command, deps: CliDeps): void {
  addPublishCommand(graph, deps);
  addDocumentsCommand(graph, deps);
}

function addPublishCommand(graph: Command, deps: CliDeps): void {
  const command = graph
    .command('publish')
    .description('publish the documents of a client, to be asked for by their ids');
  withExamples(
    addGatewayOption(command)
      .argument('<path>', 'a manifest in JSON, a file with GraphQL, or a directory with such files')
      .requiredOption('--client <name>', 'what the client is called'),
    ['rollcall graph publish persisted-documents.json --client web', 'rollcall graph publish src/queries --client app'],
  ).action(async function (this: Command, path: string) {
    const { client } = this.opts();
    const documents = readDocuments('<path>', resolve(deps.cwd, path));
    if (Object.keys(documents).length === 0) throw new UsageError('<path>: there are no documents');
    const gateway = gatewayOf(this, deps);
    const body = { client, published: 0, known: 0 };
    for (const batch of batchesOf(documents)) {
      const { published, known } = await gateway.call<Published>({
        method: 'POST',
        path: PATH,
        body: { client, documents: batch },
      });
      body.published += published;
      body.known += known;
    }
    printResult(this, deps, {
      body,
      asText: ({ published, known }) => `Documents of ${client}: ${published} published, ${known} known before.\n`,
    });
  });
}

function addDocumentsCommand(graph: Command, deps: CliDeps): void {
  const command = graph.command('documents').description('list the documents that were published, newest first');
  withExamples(
    addGatewayOption(command)
      .option('--client <name>', 'only those of a client')
      .option('--limit <count>', 'at most so many; 20 by default', parseCount),
    ['rollcall graph documents --client web'],
  ).action(async function (this: Command) {
    const { client, limit } = this.opts();
    const path = `${PATH}${queryOf({ client, limit })}`;
    const body = await gatewayOf(this, deps).call<DocumentPage>({ method: 'GET', path });
    printPage(this, deps, {
      body,
      rows: body.documents,
      what: 'documents',
      asText: (documents) => formatDocuments(documents, deps.now()),
    });
  });
}

function formatDocuments(documents: readonly DocumentRecord[], now: Date): string {
  const rows = documents.map(({ id, client, createdAt }) => [id, client, formatAge(createdAt, now)]);
  return formatTable(['DOCUMENT', 'CLIENT', 'AGE'], rows);
}
