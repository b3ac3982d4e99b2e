import { commonError } from '@rollcall/platform/common-errors.ts';
import { type CompositionError, LIMIT_CODE } from '../composition/compose.ts';
import { federationError } from '../errors.ts';
import type { Changes } from './changes.ts';
import { serviceNameOf } from './names.ts';
import type { GraphStore, Known, ReadSchema, UsageStore, UsedOperation } from './ports.ts';
import type { Compose } from './settling.ts';
import { membersOf, type News, type ReadFailure, type Subgraph } from './subgraphs.ts';

export interface SchemasDeps {
  readonly store: GraphStore;
  readonly usage: Pick<UsageStore, 'used'>;
  readonly breaks: FindBreaks;
  readonly changes: Changes;
  readonly readSchema: ReadSchema;
  readonly compose: Compose;
}

/**
 * What is wrong with each operation in another graph that is right in the one in force.
 *
 * @param before the supergraph in force. @param documents of one operation each.
 * @returns messages by the place of the document; undefined: it takes too much time or memory.
 */
export type FindBreaks = (
  before: string,
  after: string,
  documents: readonly string[],
) => Promise<readonly (readonly string[])[] | undefined>;

/** An operation that would no longer be executed. */
interface BrokenOperation extends UsedOperation {
  readonly errors: readonly string[];
}

/** What would come of a schema. */
export interface Checked {
  /** Why it does not compose with the others; empty: it does. */
  readonly errors: readonly CompositionError[];
  /** How many operations of clients were looked at. */
  readonly operations: number;
  readonly broken: readonly BrokenOperation[];
}

interface Refreshed {
  readonly refreshed: readonly string[];
  readonly failed: readonly (ReadFailure & { readonly service: string })[];
  readonly known: readonly Subgraph[];
}

/** What people and pipelines do with schemas. */
export interface Schemas {
  list(): Promise<readonly Subgraph[]>;
  /**
   * Reads the schema at a URL, and takes it into the graph where it composes.
   *
   * @param name of the service; one that is known at the URL, or comes of it, when absent.
   * @throws ServiceError URL_NOT_ALLOWED, and INTROSPECTION_FAILED where nothing answers as GraphQL.
   */
  introspect(url: string, name: string | undefined, signal: AbortSignal): Promise<Subgraph>;
  /** Reads all schemas anew. */
  refresh(signal: AbortSignal): Promise<Refreshed>;
  /** @throws ServiceError NOT_FOUND. */
  remove(service: string): Promise<void>;
  /** What would come of it if the service had this schema. */
  check(service: string, sdl: string): Promise<Checked>;
}

export function createSchemas({ store, usage, breaks, changes, readSchema, compose }: SchemasDeps): Schemas {
  async function list(): Promise<readonly Subgraph[]> {
    return shown(await store.load());
  }

  async function newsOf({ service, url, candidates }: Subgraph, signal: AbortSignal): Promise<News> {
    const read = await readSchema([url, ...candidates.filter((each) => each !== url)], signal);
    return read.failure === undefined
      ? { kind: 'read', service, url: read.url, sdl: read.sdl }
      : { kind: 'unread', service, failure: read.failure };
  }

  async function brokenBy(supergraph: string): Promise<Checked> {
    const [before, used] = await Promise.all([store.generation(), usage.used()]);
    if (before === undefined || before.supergraph === '') return { errors: [], operations: 0, broken: [] };
    const documents = used.map(({ document }) => document);
    const found = await breaks(before.supergraph, supergraph, documents);
    if (found === undefined) {
      const message = 'It composes. What clients use cannot be compared with it: that takes too long';
      return { errors: [{ code: LIMIT_CODE, message }], operations: 0, broken: [] };
    }
    const broken = used.flatMap((operation, at) => {
      const errors = found[at] ?? [];
      return errors.length === 0 ? [] : [{ ...operation, errors }];
    });
    return { errors: [], operations: used.length, broken };
  }

  return {
    list,
    async introspect(url, name, signal) {
      const read = await readSchema([url], signal);
      if (read.failure !== undefined) throw federationError(read.failure.code, { message: read.failure.message });
      const service = name ?? (await list()).find((each) => each.url === url)?.service ?? serviceNameOf(url);
      const after = await changes.make([{ kind: 'told', service, url, sdl: read.sdl }]);
      return foundIn(after, service);
    },
    async refresh(signal) {
      const news = await Promise.all((await list()).map((subgraph) => newsOf(subgraph, signal)));
      const after = await changes.make(news);
      return {
        refreshed: news.flatMap(({ kind, service }) => (kind === 'read' ? [service] : [])),
        failed: news.flatMap((each) => (each.kind === 'unread' ? [{ service: each.service, ...each.failure }] : [])),
        known: shown(after),
      };
    },
    async remove(service) {
      if (!(await list()).some((each) => each.service === service))
        throw commonError('NOT_FOUND', { message: 'No service of this name is known' });
      await changes.make([{ kind: 'removed', service }]);
    },
    async check(service, sdl) {
      const { subgraphs } = await store.load();
      const others = membersOf(subgraphs).filter((member) => member.service !== service && member.goodSdl !== null);
      const sources = others.map(({ service: name, url, goodSdl }) => ({ name, url, sdl: goodSdl ?? '' }));
      const url = subgraphs.get(service)?.url ?? '';
      const { supergraph, errors } = await compose([...sources, { name: service, url, sdl }]);
      return supergraph === undefined ? { errors, operations: 0, broken: [] } : brokenBy(supergraph);
    },
  };
}

/** Those that somebody removed are not there. */
function shown({ subgraphs }: Known): readonly Subgraph[] {
  return [...subgraphs.values()]
    .filter(({ isLeftOut }) => !isLeftOut)
    .toSorted((a, b) => (a.service < b.service ? -1 : 1));
}

/** @throws ServiceError NOT_FOUND where somebody removed it meanwhile. */
function foundIn({ subgraphs }: Known, service: string): Subgraph {
  const subgraph = subgraphs.get(service);
  if (subgraph === undefined) throw commonError('NOT_FOUND');
  return subgraph;
}
