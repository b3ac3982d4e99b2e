import { commonError } from '@rollcall/platform/common-errors.ts';
import type { Composition, CompositionError } from '../composition/compose.ts';
import { federationError } from '../errors.ts';
import type { Changes } from './changes.ts';
import { serviceNameOf } from './names.ts';
import type { GraphStore, Known, ReadSchema } from './ports.ts';
import type { Compose } from './settling.ts';
import { membersOf, type News, type ReadFailure, type Subgraph } from './subgraphs.ts';

export interface SchemasDeps {
  readonly store: GraphStore;
  readonly changes: Changes;
  readonly readSchema: ReadSchema;
  readonly compose: Compose;
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
  /** What would be wrong with the graph if the service had this schema; nothing where it is empty. */
  check(service: string, sdl: string): Promise<readonly CompositionError[]>;
}

export function createSchemas({ store, changes, readSchema, compose }: SchemasDeps): Schemas {
  async function list(): Promise<readonly Subgraph[]> {
    return shown(await store.load());
  }

  async function newsOf({ service, url, candidates }: Subgraph, signal: AbortSignal): Promise<News> {
    const read = await readSchema([url, ...candidates.filter((each) => each !== url)], signal);
    return read.failure === undefined
      ? { kind: 'read', service, url: read.url, sdl: read.sdl }
      : { kind: 'unread', service, failure: read.failure };
  }

  return {
    list,
    async introspect(url, name, signal) {
      const read = await readSchema([url], signal);
      if (read.failure !== undefined) throw federationError(read.failure.code, { message: read.failure.message });
      const known = await list();
      const service = name ?? known.find((each) => each.url === url)?.service ?? serviceNameOf(url);
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
      if (!(await list()).some((each) => each.service === service)) throw commonError('NOT_FOUND');
      await changes.make([{ kind: 'removed', service }]);
    },
    async check(service, sdl) {
      const { subgraphs } = await store.load();
      const others = membersOf(subgraphs).filter((member) => member.service !== service && member.goodSdl !== null);
      const sources = others.map(({ service: name, url, goodSdl }) => ({ name, url, sdl: goodSdl ?? '' }));
      const url = subgraphs.get(service)?.url ?? '';
      return errorsOf(await compose([...sources, { name: service, url, sdl }]));
    },
  };
}

function errorsOf({ errors = [] }: Composition): readonly CompositionError[] {
  return errors;
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
