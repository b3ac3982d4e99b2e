// `node subgraphs.ts PORT`: services with GraphQL at `/NAME`, of Federation 1, which all gateways
// understand. They look up what is ready in memory, so that it is the gateway that is measured.
// `/cpu` answers with the milliseconds of CPU that the process has used.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type DocumentNode, Kind, parse, type SelectionSetNode } from 'graphql/index.js';
import { type Entity, subgraphNamed } from './subgraph-data.ts';

const [port = ''] = process.argv.slice(2);
const MOST_DOCUMENTS = 1000;
const EVENT_INTERVAL_MS = 180;
const documents = new Map<string, DocumentNode>();

interface Asked {
  readonly query: string;
  readonly variables?: { readonly [name: string]: unknown };
}

type Selected = Record<string, unknown>;

createServer((request, response) => {
  if (request.url === '/cpu') {
    const { user, system } = process.cpuUsage();
    response.end(String((user + system) / 1000));
    return;
  }
  void answer(request, response);
}).listen(Number(port), '127.0.0.1');

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url = '', headers } = request;
  if (method !== 'POST') {
    response.writeHead(405).end();
    return;
  }
  const asked: Asked = JSON.parse(await text(request));
  if (headers.accept?.startsWith('text/event-stream') === true) {
    stream(asked, response);
    return;
  }
  const data = answerOf(url.slice(1), asked);
  const content = JSON.stringify({ data });
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) });
  response.end(content);
}

/** Each subscription has its own events, at its own times; when they happened is in them. */
function stream({ query }: Asked, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const document = documentOf(query);
  const tell = (): void => {
    const tick = { __typename: 'Tick', at: performance.timeOrigin + performance.now() };
    const data = selected(document, { __typename: 'Subscription', tick });
    response.write(`event: next\ndata: ${JSON.stringify({ data })}\n\n`);
  };
  const timer = setInterval(tell, EVENT_INTERVAL_MS);
  response.on('close', () => clearInterval(timer));
}

function answerOf(name: string, { query, variables = {} }: Asked): Selected {
  const { sdl, root, entities } = subgraphNamed(name);
  const representations = Object.values(variables).find((value) => Array.isArray(value)) ?? [];
  const found = representations.map(({ id }: { readonly id: string }) => entities.get(id) ?? null);
  return selected(documentOf(query), { __typename: 'Query', ...root, _service: { sdl }, _entities: found });
}

function documentOf(query: string): DocumentNode {
  let document = documents.get(query);
  if (document === undefined) {
    if (documents.size === MOST_DOCUMENTS) documents.clear();
    document = parse(query, { noLocation: true });
    documents.set(query, document);
  }
  return document;
}

function selected({ definitions }: DocumentNode, root: Entity): Selected {
  const fragments = new Map<string, SelectionSetNode>();
  const result: Selected = {};
  for (const definition of definitions)
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition.selectionSet);
  for (const definition of definitions)
    if (definition.kind === Kind.OPERATION_DEFINITION) select(definition.selectionSet, root, result);
  return result;

  function select(set: SelectionSetNode, object: Entity, into: Selected): Selected {
    for (const selection of set.selections) {
      if (selection.kind === Kind.FRAGMENT_SPREAD) {
        const fragment = fragments.get(selection.name.value);
        if (fragment !== undefined) select(fragment, object, into);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        const type = selection.typeCondition?.name.value ?? object['__typename'];
        if (type === object['__typename']) select(selection.selectionSet, object, into);
      } else {
        const value = object[selection.name.value] ?? null;
        into[(selection.alias ?? selection.name).value] = valueOf(value, selection.selectionSet);
      }
    }
    return into;
  }

  function valueOf(value: unknown, set: SelectionSetNode | undefined): unknown {
    if (set === undefined || !isEntity(value)) return value;
    return Array.isArray(value) ? value.map((item: unknown) => valueOf(item, set)) : select(set, value, {});
  }
}

function isEntity(value: unknown): value is Entity {
  return typeof value === 'object' && value !== null;
}
