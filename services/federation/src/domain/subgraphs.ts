import type { CompositionError } from '../composition/compose.ts';

/** A service with GraphQL, as it is known. */
export interface Subgraph {
  readonly service: string;
  /** Whether the registry tells of it, or somebody did; the latter stays until it is removed. */
  readonly source: 'registered' | 'introspected';
  /** URLs where its GraphQL may be. */
  readonly candidates: readonly string[];
  /** The one of them that has answered; until then the first. */
  readonly url: string;
  /** As registered. */
  readonly version: string | null;
  /** As it was last read; null: never. */
  readonly sdl: string | null;
  /** What of it is in the graph; null: nothing. */
  readonly goodSdl: string | null;
  /** Why `sdl` is not in the graph. */
  readonly errors: readonly CompositionError[];
  /** Why it could not be read when that was last tried. */
  readonly failure: ReadFailure | null;
  /** Since when it is no longer registered. */
  readonly goneAt: Date | null;
  /** Somebody removed it, and it is registered still. */
  readonly isLeftOut: boolean;
  /** When `sdl` last changed. */
  readonly updatedAt: Date;
}

/** Why the schema of a service could not be read. */
export interface ReadFailure {
  readonly code: 'INTROSPECTION_FAILED' | 'URL_NOT_ALLOWED';
  readonly message: string;
}

/** By the name of the service. */
export type Subgraphs = ReadonlyMap<string, Subgraph>;

/** What becomes known of one service. */
export type News =
  | {
      readonly kind: 'registered';
      readonly service: string;
      readonly candidates: readonly string[];
      readonly version: string | null;
    }
  /** It has expired, or was unregistered. */
  | { readonly kind: 'gone'; readonly service: string }
  /** The time for which a gone one stays is over. */
  | { readonly kind: 'lapsed'; readonly service: string }
  /** Somebody told of it, and its schema was read. */
  | { readonly kind: 'told'; readonly service: string; readonly url: string; readonly sdl: string }
  | { readonly kind: 'read'; readonly service: string; readonly url: string; readonly sdl: string }
  | { readonly kind: 'unread'; readonly service: string; readonly failure: ReadFailure }
  /** Somebody removed it. */
  | { readonly kind: 'removed'; readonly service: string };

/** Pure. What is known after the news; the same objects where nothing has changed. */
export function afterNews(subgraphs: Subgraphs, news: readonly News[], now: Date): Subgraphs {
  const after = new Map(subgraphs);
  for (const item of news) {
    const next = afterOne(after.get(item.service), item, now);
    if (next === undefined) after.delete(item.service);
    else after.set(item.service, next);
  }
  return after;
}

/** What becomes of one; undefined: it is not known any more. */
function afterOne(known: Subgraph | undefined, news: News, now: Date): Subgraph | undefined {
  switch (news.kind) {
    case 'registered':
      return registered(known, news, now);
    case 'told':
      return { ...told(known, news), ...readSdl(known, news.sdl, now), errors: [] };
    case 'read':
      return known === undefined || !known.candidates.includes(news.url)
        ? known
        : changed(known, { url: news.url, failure: null, ...readSdl(known, news.sdl, now) });
    case 'unread':
      return known === undefined ? undefined : changed(known, { failure: news.failure });
    case 'gone':
      return gone(known, now);
    case 'lapsed':
      return known?.goneAt === null ? known : undefined;
    case 'removed':
  }
  return known?.source === 'registered' && known.goneAt === null ? leftOut(known) : undefined;
}

function registered(
  known: Subgraph | undefined,
  { service, candidates, version }: News & { readonly kind: 'registered' },
  now: Date,
): Subgraph {
  if (known?.source === 'introspected' || known?.isLeftOut === true) return known;
  const [url = ''] = candidates;
  if (known === undefined) return { ...neverRead(service, now), source: 'registered', candidates, url, version };
  const place = sameTexts(candidates, known.candidates) ? {} : { candidates, url };
  return changed(known, { ...place, version, goneAt: null });
}

function told(
  known: Subgraph | undefined,
  { service, url }: News & { readonly kind: 'told' },
): Omit<Subgraph, 'sdl' | 'updatedAt' | 'errors'> {
  const { version = null, goodSdl = null } = known ?? {};
  return {
    service,
    source: 'introspected',
    candidates: [url],
    url,
    version,
    goodSdl,
    failure: null,
    goneAt: null,
    isLeftOut: false,
  };
}

/** An SDL that is new has not been tried; one that is not keeps what came of it. */
function readSdl(known: Subgraph | undefined, sdl: string, now: Date) {
  if (known?.sdl === sdl) return { sdl, updatedAt: known.updatedAt };
  return { sdl, updatedAt: now, errors: [] };
}

/** What was never read is in no graph, so that nobody misses it. */
function gone(known: Subgraph | undefined, now: Date): Subgraph | undefined {
  if (known === undefined || known.source === 'introspected' || known.goneAt !== null) return known;
  return known.isLeftOut || known.sdl === null ? undefined : { ...known, goneAt: now };
}

function leftOut(known: Subgraph): Subgraph {
  return { ...known, isLeftOut: true, goodSdl: null, errors: [] };
}

function neverRead(service: string, now: Date): Omit<Subgraph, 'source' | 'candidates' | 'url' | 'version'> {
  return {
    service,
    sdl: null,
    goodSdl: null,
    errors: [],
    failure: null,
    goneAt: null,
    isLeftOut: false,
    updatedAt: now,
  };
}

/** The same object where nothing is another: only what has changed is written. */
function changed(known: Subgraph, change: Partial<Subgraph>): Subgraph {
  const after = { ...known, ...change };
  return JSON.stringify(after) === JSON.stringify(known) ? known : after;
}

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}

/** Those that are to be in the graph, in the order of their names. */
export function membersOf(subgraphs: Subgraphs): readonly Subgraph[] {
  return [...subgraphs.values()]
    .filter(({ isLeftOut, sdl }) => !isLeftOut && sdl !== null)
    .toSorted((a, b) => (a.service < b.service ? -1 : 1));
}

/** How a service stands with the graph (docs/decisions/0466). */
export type SubgraphStatus = 'composed' | 'held' | 'unreachable' | 'stale';

/** What a status comes of. Of `sdl` it counts whether there is one. */
export type Standing = Pick<Subgraph, 'goneAt' | 'failure' | 'errors' | 'sdl'>;

/** Pure. `stale`: it is no longer registered; `unreachable`: its schema could not be read when that was last tried. */
export function statusOf({ goneAt, failure, errors, sdl }: Standing): SubgraphStatus {
  if (goneAt !== null) return 'stale';
  if (failure !== null || sdl === null) return 'unreachable';
  return errors.length > 0 ? 'held' : 'composed';
}

/** In milliseconds. */
export interface LookTimes {
  readonly pollMs: number;
  readonly graceMs: number;
}

/** Pure. When a service is to be looked at next because of what has changed; undefined: as it was to be. */
export function lookInMs(
  before: Subgraph | undefined,
  after: Subgraph,
  { pollMs, graceMs }: LookTimes,
): number | undefined {
  if (after.goneAt !== null) return before?.goneAt === null ? graceMs : undefined;
  if (after.source === 'introspected') return before?.source === 'introspected' ? undefined : pollMs;
  const isAsBefore =
    before !== undefined &&
    before.goneAt === null &&
    before.version === after.version &&
    sameTexts(before.candidates, after.candidates);
  return isAsBefore ? undefined : 0;
}
