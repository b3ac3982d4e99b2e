import { parse } from 'graphql/index.js';
import { apiPieces } from './api-schema.ts';
import { type ContractFilter, contractDocument } from './contract.ts';
import { type CostRules, readCostRules } from './cost-rules.ts';
import { publicDocument } from './public-document.ts';
import { readSupergraph, type Supergraph } from './supergraph.ts';

/** A supergraph, read. Plain data: it is made in one thread and used in another. */
export interface GraphSource {
  readonly supergraph: Supergraph;
  /** What clients see: SDL, as `apiSchemaSteps` takes it. */
  readonly pieces: readonly string[];
  /** The same of each contract that has a query. */
  readonly contracts: ReadonlyMap<string, readonly string[]>;
  readonly costRules: CostRules;
}

/** Contracts, by the names of their endpoints. */
export type Contracts = Readonly<Record<string, ContractFilter>>;

/** Pure. @param sdl of a supergraph. @throws Error for what is no SDL. */
export function readGraph(sdl: string, contracts: Contracts): GraphSource {
  const document = parse(sdl, { noLocation: true });
  const graph = publicDocument(document);
  return {
    supergraph: readSupergraph(document),
    pieces: apiPieces(graph),
    contracts: new Map(
      Object.entries(contracts).flatMap(([name, filter]) => {
        const contract = contractDocument(graph, document, filter);
        return contract === undefined ? [] : [[name, apiPieces(contract)]];
      }),
    ),
    costRules: readCostRules(document),
  };
}
