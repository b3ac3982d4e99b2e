import { type ConstDirectiveNode, type DocumentNode, Kind, parse, print } from 'graphql/index.js';
import { withDefinitions } from './definitions.ts';
import { argumentOf, subgraphsOf } from './join-directives.ts';
import { inKeyOrder } from './key-order.ts';
import { mendSupergraph } from './mend-supergraph.ts';
import { type StandIns, withStandIns } from './stand-ins.ts';
import { withTwins } from './twins.ts';

/** A supergraph as the planner gets it. */
export interface PlannerSource {
  readonly sdl: string;
  /** Names of subgraphs by those that the planner has them under; of others the names are the same. */
  readonly names: ReadonlyMap<string, string>;
  readonly standIns: StandIns;
}

/** Pure. @param sdl of a supergraph. @throws Error for what is no SDL. */
export function plannerSource(sdl: string): PlannerSource {
  const document = parse(sdl, { noLocation: true });
  const names = new Map<string, string>();
  const { document: required, standIns } = withStandIns(inKeyOrder(mendSupergraph(document)));
  const { document: whole, twins } = withTwins(required);
  const mended = ownersFirst(whole, names);
  for (const [twin, name] of twins) names.set(twin, name);
  for (const [placed, name] of names) names.set(placed, twins.get(name) ?? name);
  return { sdl: mended === document ? sdl : print(mended), names, standIns };
}

/**
 * Names subgraphs so that those that know the types of an interface come before those that know it
 * as an object. In another order of names the planner finds no way from the latter to the types.
 *
 * @param names gets the name of each subgraph by its new one.
 */
function ownersFirst(document: DocumentNode, names: Map<string, string>): DocumentNode {
  const owners = ownersBySubgraph(document);
  if (owners.size === 0) return document;
  return withDefinitions(document, (node) => {
    if (node.kind !== Kind.ENUM_TYPE_DEFINITION || node.name.value !== 'join__Graph') return node;
    const order = inOrder(node.values?.map(({ name }) => name.value) ?? [], owners);
    const values = node.values?.map((value) => {
      const place = String(order.indexOf(value.name.value)).padStart(5, '0');
      return { ...value, directives: value.directives?.map((directive) => renamed(directive, place, names)) ?? [] };
    });
    return { ...node, values: values ?? [] };
  });
}

/** By subgraph with an interface as an object, the subgraphs that know its types. */
function ownersBySubgraph({ definitions }: DocumentNode): ReadonlyMap<string, ReadonlySet<string>> {
  const owners = new Map<string, Set<string>>();
  for (const definition of definitions) {
    if (definition.kind !== Kind.INTERFACE_TYPE_DEFINITION) continue;
    const { all, asObject } = subgraphsOf(definition);
    for (const object of asObject) {
      const graph = argumentOf(object, 'graph') ?? '';
      const known = owners.get(graph) ?? new Set();
      owners.set(graph, known);
      for (const type of all) if (!asObject.includes(type)) known.add(argumentOf(type, 'graph') ?? '');
    }
  }
  return owners;
}

/** Each after its owners; where they go in a circle, as well as can be. */
function inOrder(graphs: readonly string[], owners: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] {
  const ordered = new Set<string>();
  const seen = new Set<string>();
  const add = (graph: string): void => {
    if (seen.has(graph)) return;
    seen.add(graph);
    for (const owner of owners.get(graph) ?? []) add(owner);
    ordered.add(graph);
  };
  for (const graph of graphs) add(graph);
  return [...ordered];
}

/** `@join__graph` with the place in front of the name. */
function renamed(directive: ConstDirectiveNode, place: string, names: Map<string, string>): ConstDirectiveNode {
  const given = directive.arguments?.map((argument) => {
    const { name, value } = argument;
    if (name.value !== 'name' || value.kind !== Kind.STRING) return argument;
    const placed = `${place}-${value.value}`;
    names.set(placed, value.value);
    return { ...argument, value: { ...value, value: placed } };
  });
  return { ...directive, arguments: given ?? [] };
}
