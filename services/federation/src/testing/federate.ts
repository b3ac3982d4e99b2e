import { compose } from '../composition/compose.ts';
import { apiSchemaSteps } from '../execution/api-schema.ts';
import { createGraph, type Graph, type GraphAnswer, type GraphRequest } from '../execution/graph.ts';
import { readGraph } from '../execution/graph-source.ts';
import type { OperationLimits } from '../execution/limits.ts';
import { createPlanner, planBy } from '../execution/planner.ts';
import { plannerSource } from '../execution/planner-source.ts';
import type { JsonObject, SubgraphAnswer, SubgraphCall } from '../execution/types.ts';
import { allSteps } from './steps.ts';
import { type SubgraphSource, TestSubgraph } from './subgraph.ts';

/** A graph over subgraphs in memory, and what they are asked. */
export interface TestGraph {
  readonly graph: Graph<undefined>;
  /** Calls since the last request, in the order that they were made. */
  readonly calls: readonly SubgraphCall[];
  /** Answers instead of a subgraph, until it is undefined. */
  interfere: ((call: SubgraphCall) => SubgraphAnswer | undefined) | undefined;
  ask(query: string, more?: Omit<Partial<GraphRequest<undefined>>, 'query'>): Promise<GraphAnswer>;
  /** Why no plan is made, until it is undefined. */
  planFault: Error | undefined;
  /** How many plans were asked for. */
  plans(): number;
  /** Which subgraphs the last request asked, in order. */
  asked(): readonly string[];
  /** The representations that the last request sent to a subgraph. */
  sent(subgraph: string): readonly unknown[];
}

/** Prelude of a subgraph of Federation 2. */
export const FEDERATION_2 = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable",
  "@external", "@requires", "@provides", "@override", "@inaccessible", "@interfaceObject", "@extends", "@tag"])`;

/** Those that the process has by default. */
const LIMITS: OperationLimits = {
  tokens: 2000,
  depth: 20,
  aliases: 50,
  rootFields: 30,
  directives: 50,
  cost: 100_000,
  listSize: 10,
  allowsIntrospection: true,
};

/** For queries that nobody would write. */
export const WIDE_LIMITS: OperationLimits = {
  ...LIMITS,
  tokens: 100_000,
  depth: 100,
  aliases: 10_000,
  rootFields: 10_000,
  directives: 10_000,
  cost: Number.MAX_SAFE_INTEGER,
};

/** @throws Error where the subgraphs do not compose. */
export function federate(
  sources: Readonly<Record<string, SubgraphSource>>,
  limits: Partial<OperationLimits> = {},
  keptBytes = 64 * 1024 * 1024,
): TestGraph {
  const subgraphs = new Map(Object.entries(sources).map(([name, source]) => [name, new TestSubgraph(source)]));
  const described = Object.entries(sources).map(([name, { sdl }]) => ({
    name,
    url: `http://${name}/api/graphql`,
    sdl,
  }));
  const { supergraph, errors } = compose(described);
  if (supergraph === undefined) throw new Error(`It does not compose: ${JSON.stringify(errors)}`);
  const calls: SubgraphCall[] = [];
  let plans = 0;
  const source = readGraph(supergraph, {});
  const planned = plannerSource(supergraph);
  const planner = createPlanner(planned.sdl);
  const counted: typeof planner = async (...asked) => {
    plans += 1;
    if (federated.planFault !== undefined) throw federated.planFault;
    return planner(...asked);
  };
  const graph = createGraph<undefined>({
    supergraph: source.supergraph,
    schema: allSteps(apiSchemaSteps(source.pieces)),
    makePlan: planBy(counted, planned),
    costRules: source.costRules,
    limits: { ...LIMITS, ...limits },
    keptBytes,
    callSubgraph,
    openSource: () => ReadableStream.from([]),
    close: () => undefined,
  });
  const federated: TestGraph = {
    graph,
    calls,
    interfere: undefined,
    planFault: undefined,
    ask,
    plans: () => plans,
    asked,
    sent,
  };
  return federated;

  async function callSubgraph(call: SubgraphCall): Promise<SubgraphAnswer> {
    calls.push(call);
    const answer = federated.interfere?.(call) ?? (await subgraphs.get(call.subgraph)?.answer(call));
    if (answer === undefined) throw new Error(`There is no subgraph ${call.subgraph}`);
    return answer;
  }

  function ask(query: string, more: Omit<Partial<GraphRequest<undefined>>, 'query'> = {}): Promise<GraphAnswer> {
    calls.length = 0;
    return graph.execute({ query, context: undefined, caller: undefined, ...more }, new AbortController().signal);
  }

  function asked(): readonly string[] {
    return calls.map(({ subgraph }) => subgraph);
  }

  function sent(subgraph: string): readonly unknown[] {
    return calls.filter((call) => call.subgraph === subgraph).flatMap(({ variables }) => representationsIn(variables));
  }
}

function representationsIn(variables: Readonly<JsonObject>): readonly unknown[] {
  return Object.values(variables).flatMap((value) => (isRepresentations(value) ? value : []));
}

function isRepresentations(value: unknown): value is readonly JsonObject[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'object' && one !== null && '__typename' in one);
}
