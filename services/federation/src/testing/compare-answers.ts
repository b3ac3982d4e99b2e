import { isDeepStrictEqual } from 'node:util';
import { parse, validate } from 'graphql/index.js';
import type { TestGraph } from './federate.ts';
import { answerOfOneService, type Values } from './one-service.ts';
import { randomFrom, randomQuery } from './random-query.ts';

/** Seeds of random queries. */
interface Queries {
  readonly from: number;
  readonly count: number;
}

interface Difference {
  readonly query: string;
  readonly expected: unknown;
  readonly answer: unknown;
}

/** Random queries that the graph answers otherwise than one service with all values would. */
export async function differences(
  graph: TestGraph,
  values: Values,
  { from, count }: Queries,
): Promise<readonly Difference[]> {
  const { apiSchema } = graph.graph;
  const found: Difference[] = [];
  for (let seed = from; seed < from + count; seed += 1) {
    const query = randomQuery(apiSchema, randomFrom(seed));
    const [fault] = validate(apiSchema, parse(query));
    if (fault !== undefined) throw fault;
    const expected: unknown = await answerOfOneService(apiSchema, query, values);
    const answer: unknown = JSON.parse(JSON.stringify(await graph.ask(query)));
    if (!isDeepStrictEqual(answer, expected)) found.push({ query, expected, answer });
  }
  return found;
}
