import { hash } from 'node:crypto';
import { readNewest } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool, type PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Change, Generation, GenerationEntry, GraphStore, Outline, Position } from '../domain/ports.ts';
import { type LookTimes, lookInMs, membersOf, type Subgraph, type Subgraphs, statusOf } from '../domain/subgraphs.ts';

/** The number of the graph in force. */
const IN_FORCE = 'coalesce(pinned, generation)';
/** So that a graph is not pinned while it is forgotten. */
const LOCK = 'SELECT FROM graph FOR UPDATE';
/** Kept for the history. */
const KEPT_GENERATIONS = 100;

interface SubgraphRow extends OutlineRow {
  readonly url: string;
  readonly sdl: string | null;
  readonly good_sdl: string | null;
  readonly errors: Subgraph['errors'];
  readonly failure: Subgraph['failure'];
  readonly updated_at: Date;
}

type StandingRow = Pick<SubgraphRow, 'service' | 'gone_at' | 'failure' | 'errors' | 'sdl'>;

interface OutlineRow {
  readonly service: string;
  readonly source: Subgraph['source'];
  readonly candidates: string[];
  readonly version: string | null;
  readonly gone_at: Date | null;
  readonly is_left_out: boolean;
}

/** @param pool throws until the schema is up to date. */
export function createGraphStore(pool: () => Pool, times: LookTimes): GraphStore {
  return {
    position: () => readPosition(pool()),
    async load() {
      // Before the rows: where they change meanwhile, the change that is made of them fails.
      const position = await readPosition(pool());
      const { rows } = await pool().query<SubgraphRow>('SELECT * FROM subgraphs');
      return { ...position, subgraphs: new Map(rows.map((row) => [row.service, subgraphOf(row)])) };
    },
    async outlines() {
      const { rows } = await pool().query<OutlineRow>(
        'SELECT service, source, candidates, version, gone_at, is_left_out FROM subgraphs',
      );
      return rows.map(outlineOf);
    },
    async statuses() {
      const { rows } = await pool().query<StandingRow>(
        `SELECT service, gone_at, failure, errors, left(sdl, 1) AS sdl FROM subgraphs WHERE NOT is_left_out`,
      );
      return new Map(rows.map(({ service, gone_at: goneAt, ...rest }) => [service, statusOf({ goneAt, ...rest })]));
    },
    async standings() {
      const { rows } = await pool().query<StandingRow & Pick<SubgraphRow, 'is_left_out'>>(
        `SELECT service, gone_at, failure, errors, left(sdl, 1) AS sdl, is_left_out FROM subgraphs`,
      );
      return new Map(
        rows.map(({ service, gone_at: goneAt, is_left_out: isLeftOut, ...rest }) => [
          service,
          { goneAt, isLeftOut, ...rest },
        ]),
      );
    },
    commit: (change) => inTransaction(pool(), (client) => commit(client, change, times)),
    async generation() {
      const { rows } = await pool().query<{ number: string; supergraph: string; hash: string }>(
        `SELECT number, supergraph, hash FROM generations WHERE number = (SELECT ${IN_FORCE} FROM graph)`,
      );
      return rows.map((row): Generation => ({ ...row, number: Number(row.number) }))[0];
    },
    pin: (number) =>
      inTransaction(pool(), async (client) => {
        await client.query(LOCK);
        const { rowCount } = await client.query(
          `UPDATE graph SET pinned = $1 WHERE EXISTS (SELECT FROM generations WHERE number = $1 AND supergraph <> '')`,
          [number],
        );
        return rowCount === 1;
      }),
    async unpin() {
      await pool().query('UPDATE graph SET pinned = NULL');
    },
    async pinned() {
      const { rows } = await pool().query<{ pinned: string | null }>('SELECT pinned FROM graph');
      const pinned = rows[0]?.pinned ?? null;
      return pinned === null ? undefined : Number(pinned);
    },
    async history(page) {
      const { rows, ...list } = await readNewest<{
        number: string;
        hash: string;
        subgraphs: GenerationEntry['subgraphs'];
        created_at: Date;
      }>(pool(), {
        columns: 'number, hash, subgraphs, created_at',
        table: 'generations',
        where: 'TRUE',
        parameters: [],
        page,
      });
      const entries = rows.map(({ number, hash, subgraphs, created_at: createdAt }) => ({
        number: Number(number),
        hash,
        subgraphs,
        createdAt,
      }));
      return { rows: entries, ...list };
    },
  };
}

/** Forgets graphs of long ago. @param limit how many at most. @returns how many. */
export async function pruneGenerations(pool: Pool, limit: number): Promise<number> {
  return inTransaction(pool, async (client) => {
    await client.query(LOCK);
    const { rowCount } = await client.query(
      `DELETE FROM generations WHERE id IN (
         SELECT generations.id FROM generations, graph
         WHERE number <= generation - $1 AND number IS DISTINCT FROM pinned LIMIT $2)`,
      [KEPT_GENERATIONS, limit],
    );
    return rowCount ?? 0;
  });
}

async function readPosition(pool: Pool): Promise<Position> {
  const { rows } = await pool.query<{ revision: string; generation: string }>(
    `SELECT revision, ${IN_FORCE} AS generation FROM graph`,
  );
  const [row] = rows;
  if (row === undefined) throw new Error('The table graph has lost its row');
  return { revision: Number(row.revision), generation: Number(row.generation) };
}

async function commit(
  client: PoolClient,
  { before, subgraphs, supergraph }: Change,
  times: LookTimes,
): Promise<Position | undefined> {
  const { rowCount } = await client.query('UPDATE graph SET revision = revision + 1 WHERE revision = $1', [
    before.revision,
  ]);
  if (rowCount === 0) return undefined;
  const gone = [...before.subgraphs.keys()].filter((service) => !subgraphs.has(service));
  await client.query('DELETE FROM subgraphs WHERE service = ANY($1)', [gone]);
  for (const [service, after] of subgraphs) {
    const known = before.subgraphs.get(service);
    if (known !== after) await writeSubgraph(client, after, lookInMs(known, after, times));
  }
  const revision = before.revision + 1;
  if (supergraph === undefined) return { revision, generation: before.generation };
  return { revision, generation: await writeGeneration(client, subgraphs, supergraph) };
}

async function writeSubgraph(client: PoolClient, subgraph: Subgraph, dueInMs: number | undefined): Promise<void> {
  const { service, source, candidates, url, version, sdl, goodSdl, errors, failure } = subgraph;
  await client.query(
    `INSERT INTO subgraphs (service, source, candidates, url, version, sdl, good_sdl, errors, failure,
       gone_at, is_left_out, updated_at, due_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, now() + make_interval(secs => $13))
     ON CONFLICT (service) DO UPDATE SET source = $2, candidates = $3, url = $4, version = $5, sdl = $6,
       good_sdl = $7, errors = $8, failure = $9, gone_at = $10, is_left_out = $11, updated_at = $12,
       due_at = coalesce(now() + make_interval(secs => $13), subgraphs.due_at)`,
    [
      service,
      source,
      candidates,
      url,
      version,
      sdl,
      goodSdl,
      JSON.stringify(errors),
      failure === null ? null : JSON.stringify(failure),
      subgraph.goneAt,
      subgraph.isLeftOut,
      subgraph.updatedAt,
      dueInMs === undefined ? null : dueInMs / 1000,
    ],
  );
}

/** @returns its number, or that of the graph in force where it is the same. */
async function writeGeneration(client: PoolClient, subgraphs: Subgraphs, supergraph: string): Promise<number> {
  const inGraph = membersOf(subgraphs).flatMap(({ service, goodSdl }) =>
    goodSdl === null ? [] : [[service, hashOf(goodSdl)]],
  );
  const sameHash = hashOf(supergraph);
  const { rows } = await client.query<{ number: string }>(
    `WITH next AS (
       UPDATE graph SET generation = generation + 1
       WHERE NOT EXISTS (SELECT FROM generations WHERE number = graph.generation AND hash = $2)
       RETURNING generation),
     written AS (
       INSERT INTO generations (number, supergraph, hash, subgraphs) SELECT generation, $1, $2, $3 FROM next)
     SELECT coalesce((SELECT generation FROM next), (SELECT generation FROM graph)) AS number`,
    [supergraph, sameHash, JSON.stringify(Object.fromEntries(inGraph))],
  );
  return Number(rows[0]?.number);
}

function hashOf(text: string): string {
  return hash('sha256', text, 'hex');
}

function subgraphOf(row: SubgraphRow): Subgraph {
  const { url, sdl, good_sdl: goodSdl, errors, failure, updated_at: updatedAt } = row;
  return { ...outlineOf(row), url, sdl, goodSdl, errors, failure, updatedAt };
}

function outlineOf({ service, source, candidates, version, gone_at, is_left_out }: OutlineRow): Outline {
  return { service, source, candidates, version, goneAt: gone_at, isLeftOut: is_left_out };
}
