import { queryObjects } from 'node:v8';
import type { SubgraphSource } from '@rollcall/federation/testing/subgraph.ts';
import { GraphQLSchema } from 'graphql/index.js';
import { startFederation } from './federation-service.ts';
import { reviews, users } from './shop.ts';
import { startSubgraph } from './subgraph-server.ts';

/** What came of changing the graph while it was queried. */
export interface ChangesUnderLoad {
  readonly queries: number;
  /** Answers that were not right. */
  readonly wrong: readonly unknown[];
  /** The number of the graph in force at the end. */
  readonly generation: number;
  /** How many more schemas are in memory than before. */
  readonly schemasLeft: () => number;
}

const CALLERS = 4;
const QUERY = '{ users { name reviews } }';
const ANSWER = JSON.stringify({
  data: {
    users: [
      { name: 'Anna', reviews: ['review of 1'] },
      { name: 'Ben', reviews: ['review of 2'] },
    ],
  },
});

/** Has a third service change its schema again and again, while others ask for what does not change. */
export async function changeUnderLoad(changes: number): Promise<ChangesUnderLoad> {
  const before = schemas();
  const { call, query } = await startFederation();
  const introspect = async (serviceUrl: string, name: string) =>
    call('POST', '/schemas/introspect', { body: { serviceUrl, name } });
  await introspect((await startSubgraph(users)).url, 'users');
  await introspect((await startSubgraph(reviews)).url, 'reviews');
  const changing = await startSubgraph(schemaOf(0));
  const over = new AbortController();
  let queries = 0;
  const wrong: unknown[] = [];
  const ask = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const answer: unknown = await query(QUERY).catch((error: unknown) => String(error));
      queries += 1;
      if (JSON.stringify(answer) !== ANSWER) wrong.push(answer);
    }
  };
  const asking = Array.from({ length: CALLERS }, ask);
  for (let change = 1; change <= changes; change += 1) {
    changing.become(schemaOf(change));
    await introspect(changing.url, 'changing');
    const own: unknown = await query(`{ field${change} }`);
    if (JSON.stringify(own) !== `{"data":{"field${change}":${change}}}`) wrong.push(own);
  }
  over.abort();
  await Promise.all(asking);
  const { body } = await call('GET', '/schemas/history?limit=1');
  const { generations } = body as { generations: readonly { generation: number }[] };
  return { queries, wrong, generation: generations[0]?.generation ?? 0, schemasLeft: () => schemas() - before };
}

function schemaOf(change: number): SubgraphSource {
  const field = `field${change}`;
  return { sdl: `type Query { ${field}: Int }`, resolvers: { Query: { [field]: () => change } } };
}

/** After a collection of garbage. */
function schemas(): number {
  return queryObjects(GraphQLSchema, { format: 'count' });
}
