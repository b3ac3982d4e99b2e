import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import type { ReadFailure, Standing, Subgraph, SubgraphStatus, Subgraphs } from './subgraphs.ts';

/** A schema, and where it was found; or why none was. */
type SchemaRead =
  | { readonly url: string; readonly sdl: string; readonly failure?: never }
  | { readonly failure: ReadFailure };

/** Reads the schema of a service from the first of the URLs that answers as GraphQL. */
export type ReadSchema = (urls: readonly string[], signal: AbortSignal) => Promise<SchemaRead>;

/** Where all that is known stands. It moves on with each change, of whichever replica. */
export interface Position {
  /** Counts the changes of what is known. */
  readonly revision: number;
  /** The number of the graph in force; 0: there has been none. */
  readonly generation: number;
}

/** All that is known at a position. */
export interface Known extends Position {
  readonly subgraphs: Subgraphs;
}

/** A graph that is or was in force. */
export interface Generation {
  readonly number: number;
  /** SDL; empty: no service is in it. */
  readonly supergraph: string;
  /** Of the SDL. */
  readonly hash: string;
}

/** One line of the history of graphs. */
export interface GenerationEntry {
  readonly number: number;
  readonly hash: string;
  /** The hash of the SDL of each service, by its name. */
  readonly subgraphs: Readonly<Record<string, string>>;
  readonly createdAt: Date;
}

export interface Change {
  readonly before: Known;
  readonly subgraphs: Subgraphs;
  /** SDL; undefined: the graph in force stays. */
  readonly supergraph: string | undefined;
}

/** What a replica needs to know of a service to see whether news of it are any. */
export type Outline = Pick<Subgraph, 'service' | 'source' | 'candidates' | 'version' | 'goneAt' | 'isLeftOut'>;

/** An operation that clients executed within the days that usage is kept. */
export interface UsedOperation {
  /** SHA-256 of the document. */
  readonly hash: string;
  readonly name: string | null;
  /** Without literals. */
  readonly document: string;
  /** What its clients call themselves, or some of them. */
  readonly clients: readonly string[];
  /** How often. */
  readonly count: number;
  readonly lastUsedAt: Date;
}

/** What clients do with the graph. */
export interface UsageStore {
  /** The last used first; as many as a check can look at. */
  used(): Promise<readonly UsedOperation[]>;
  /** @param coordinate only those that use it, such as `User.name`; all when undefined. */
  list(page: ListPage, coordinate: string | undefined): Promise<NewestPage<UsedOperation>>;
}

/** What is kept, the same for all replicas. */
export interface GraphStore {
  position(): Promise<Position>;
  load(): Promise<Known>;
  outlines(): Promise<readonly Outline[]>;
  /** How each service stands that is not left out. */
  statuses(): Promise<ReadonlyMap<string, SubgraphStatus>>;
  /** As {@link statuses}, and why; also of services that are left out. */
  standings(): Promise<ReadonlyMap<string, Standing & Pick<Subgraph, 'isLeftOut'>>>;
  /**
   * Writes a change, unless another has come first.
   *
   * @returns where all stands then; undefined: nothing was written, as there has been another change.
   */
  commit(change: Change): Promise<Position | undefined>;
  /** The graph in force; undefined: there has been none. */
  generation(): Promise<Generation | undefined>;
  history(page: ListPage): Promise<NewestPage<GenerationEntry>>;
  /** Puts an earlier graph in force, until it is let go of. @returns false: it is none, or an empty one. */
  pin(number: number): Promise<boolean>;
  /** Puts the newest graph in force. */
  unpin(): Promise<void>;
  /** The number of the graph that is pinned. */
  pinned(): Promise<number | undefined>;
}
