import { type Composition, type CompositionError, LIMIT_CODE, type SubgraphSource } from '../composition/compose.ts';
import { membersOf, type Subgraph, type Subgraphs } from './subgraphs.ts';

/** As the composer does it. */
export type Compose = (subgraphs: readonly SubgraphSource[]) => Promise<Composition>;

/** What is to be in force. */
export interface Settled {
  /** With what of each is in the graph, and why the rest is not. */
  readonly subgraphs: Subgraphs;
  /** SDL; empty: no service is in it; undefined: the one that is in force stays. */
  readonly supergraph: string | undefined;
}

/** One change waits for so many compositions at most; what was not tried by then is tried with the next change. */
const MOST_COMPOSITIONS = 64;

/** A graph that composes. */
interface Found {
  /** Of these it has the newest schema, of others what was good. */
  readonly newest: ReadonlySet<Subgraph>;
  readonly supergraph: string;
  /** Why the newest schema of others is not in it, by service. */
  readonly failed: ReadonlyMap<string, readonly CompositionError[]>;
}

/**
 * Composes the largest graph that can be found (docs/decisions/0466): of all newest schemas, else of
 * all but one of the new ones, else of what was in force and each new one that fits. Whatever does not
 * fit is held, at what of it was good before. Where nothing fits, the graph in force stays.
 */
export async function settle(subgraphs: Subgraphs, composeAll: Compose): Promise<Settled> {
  const members = membersOf(subgraphs);
  const compose = limitedTo(MOST_COMPOSITIONS, composeAll);
  const hostile = new Set(members.filter(isHostile));
  const tried = members.filter((member) => !hostile.has(member));
  const pending = tried.filter(({ sdl, goodSdl }) => sdl !== goodSdl);
  const everything = await compose(sourcesOf(members, new Set(tried)));
  if (everything.errors === undefined) {
    return settled(subgraphs, { newest: new Set(tried), supergraph: everything.supergraph, failed: new Map() });
  }
  const butOne = await allButOne();
  return butOne ?? fromGood();

  /** What changed last is most likely at fault. */
  async function allButOne(): Promise<Settled | undefined> {
    const newestFirst = pending.toSorted((a, b) => b.updatedAt.getTime() - a.updatedAt.getTime());
    // With a single one that is what was in force.
    if (pending.length < 2) return undefined;
    for (const culprit of newestFirst) {
      const others = new Set(tried.filter((member) => member !== culprit));
      const { supergraph } = await compose(sourcesOf(members, others));
      if (supergraph === undefined) continue;
      const failed = new Map([[culprit.service, everything.errors ?? []]]);
      return settled(subgraphs, { newest: others, supergraph, failed });
    }
    return undefined;
  }

  async function fromGood(): Promise<Settled> {
    const good = tried.filter((member) => !pending.includes(member));
    const base = await compose(sourcesOf(members, new Set(good)));
    const { errors = [] } = everything;
    if (base.supergraph === undefined) return nothingFits(errors);
    return addEach(new Set(good), base.supergraph);
  }

  /** One may make room for another: all are tried until none fits any more. */
  async function addEach(inForce: ReadonlySet<Subgraph>, base: string): Promise<Settled> {
    const failed = new Map<string, readonly CompositionError[]>();
    let [current, supergraph] = [inForce, base];
    for (let hasGrown = true; hasGrown; ) {
      hasGrown = false;
      for (const candidate of pending.filter((member) => !current.has(member))) {
        const larger = new Set([...current, candidate]);
        const composed = await compose(sourcesOf(members, larger));
        if (composed.errors !== undefined) failed.set(candidate.service, composed.errors);
        else [current, supergraph, hasGrown] = [larger, composed.supergraph, true];
      }
    }
    return settled(subgraphs, { newest: current, supergraph, failed });
  }

  function nothingFits(errors: readonly CompositionError[]): Settled {
    const held = pending.length > 0 ? pending : members;
    const after = new Map(subgraphs);
    for (const member of held) after.set(member.service, { ...member, errors });
    return { subgraphs: after, supergraph: undefined };
  }
}

/** It took all the time or memory that there is, and is not tried again as long as it is the same. */
function isHostile({ errors, sdl, goodSdl }: Subgraph): boolean {
  return sdl !== goodSdl && errors.some(({ code }) => code === LIMIT_CODE);
}

/** @param newest of these the newest schema, of others the one that was good. */
function sourcesOf(members: readonly Subgraph[], newest: ReadonlySet<Subgraph>): readonly SubgraphSource[] {
  return members.flatMap((member) => {
    const sdl = newest.has(member) ? member.sdl : member.goodSdl;
    return sdl === null ? [] : [{ name: member.service, url: member.url, sdl }];
  });
}

function settled(subgraphs: Subgraphs, { newest, supergraph, failed }: Found): Settled {
  const after = new Map(subgraphs);
  for (const member of membersOf(subgraphs)) {
    const goodSdl = newest.has(member) ? member.sdl : member.goodSdl;
    const errors = goodSdl === member.sdl ? [] : (failed.get(member.service) ?? member.errors);
    if (goodSdl !== member.goodSdl || errors !== member.errors)
      after.set(member.service, { ...member, goodSdl, errors });
  }
  return { subgraphs: after, supergraph };
}

/** No subgraph at all composes to nothing. */
function limitedTo(most: number, compose: Compose): Compose {
  let count = 0;
  return async (sources) => {
    if (sources.length === 0) return { supergraph: '' };
    count += 1;
    if (count > most) return { errors: [{ code: 'NOT_TRIED', message: 'Too many schemas are new at once' }] };
    return compose(sources);
  };
}
