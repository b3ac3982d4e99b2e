import type { RequiresSelection } from '@graphql-hive/router-query-planner';
import {
  type DocumentNode,
  type FieldNode,
  type InlineFragmentNode,
  Kind,
  type OperationDefinitionNode,
  parse,
  parseType,
  print,
  type SelectionNode,
  type SelectionSetNode,
  stripIgnoredCharacters,
  type VariableDefinitionNode,
  visit,
} from 'graphql/index.js';
import { fragmentsOf } from './fragments.ts';
import { nameNode } from './join-directives.ts';
import type { Fetch, Lookup, Step } from './plan.ts';
import type { RequiredStandIn, StandIns } from './stand-ins.ts';

/**
 * Pure. The plan with what stand-ins stand for. Where a subgraph needs one field of an entity with
 * different arguments, the entity is asked for with each.
 */
export function withoutStandIns(step: Step, standIns: StandIns): Step {
  if (standIns.fields.size === 0) return step;
  if (step.kind !== 'fetch') return { ...step, steps: step.steps.map((next) => withoutStandIns(next, standIns)) };
  const document = parse(step.query, { noLocation: true });
  const { operation, lookups } = separated(step, document, standIns);
  const query = visit(operation, { Field: (node) => realField(node, standIns) });
  return {
    ...step,
    query: stripIgnoredCharacters(print(query)),
    lookups: lookups.map((lookup) => ({ ...lookup, requires: realNames(lookup.requires, standIns) })),
  };
}

/** Under the name of the stand-in, for that is how it is known from then on. */
function realField(node: FieldNode, { fields }: StandIns): FieldNode | undefined {
  const field = fields.get(node.name.value);
  return field && { ...node, name: field.name, arguments: field.arguments ?? [], alias: node.alias ?? node.name };
}

function realNames(selections: readonly RequiresSelection[], standIns: StandIns): RequiresSelection[] {
  return selections.map((selection) => {
    if (selection.kind === 'FragmentSpread') return selection;
    const below = selection.selections && { selections: realNames(selection.selections, standIns) };
    if (selection.kind === 'InlineFragment') return { ...selection, ...below };
    const field = standIns.fields.get(selection.alias ?? selection.name);
    return { ...selection, ...below, ...(field && { alias: field.name.value }) };
  });
}

interface Separated {
  readonly operation: DocumentNode;
  readonly lookups: readonly Lookup[];
}

/** With a look-up of its own for each representation of an entity. */
function separated({ lookups }: Fetch, document: DocumentNode, standIns: StandIns): Separated {
  const [operation] = document.definitions;
  if (operation?.kind !== Kind.OPERATION_DEFINITION) return { operation: document, lookups };
  const plain = withoutFragments(operation, document);
  const parts = lookups.flatMap((lookup) => partsOf(lookup, plain, standIns));
  if (parts.length === lookups.length) return { operation: document, lookups };
  const before = new Set(lookups.map(({ variable }) => variable));
  const others = plain.variableDefinitions?.filter(({ variable }) => !before.has(variable.name.value)) ?? [];
  const variables = new Set(parts.map(({ lookup }) => lookup.variable));
  const whole: OperationDefinitionNode = {
    ...plain,
    variableDefinitions: [...others, ...[...variables].map(representations)],
    selectionSet: { ...plain.selectionSet, selections: parts.map(({ field }) => field) },
  };
  return { operation: { ...document, definitions: [whole] }, lookups: parts.map(({ lookup }) => lookup) };
}

function withoutFragments(operation: OperationDefinitionNode, document: DocumentNode): OperationDefinitionNode {
  const fragments = fragmentsOf(document);
  return visit(operation, {
    FragmentSpread({ name }): InlineFragmentNode | undefined {
      const fragment = fragments.get(name.value);
      return fragment && { ...fragment, kind: Kind.INLINE_FRAGMENT };
    },
  });
}

function representations(name: string): VariableDefinitionNode {
  return {
    kind: Kind.VARIABLE_DEFINITION,
    variable: { kind: Kind.VARIABLE, name: nameNode(name) },
    type: parseType('[_Any!]!', { noLocation: true }),
  };
}

/** A look-up, and its field of the operation. */
interface Part {
  readonly lookup: Lookup;
  readonly field: FieldNode;
}

function partsOf(lookup: Lookup, { selectionSet }: OperationDefinitionNode, standIns: StandIns): readonly Part[] {
  const field = selectionSet.selections.find(
    (selection) => selection.kind === Kind.FIELD && (selection.alias ?? selection.name).value === lookup.field,
  );
  if (field?.kind !== Kind.FIELD || field.selectionSet === undefined) return [];
  const groups = groupsOf(field.selectionSet, standIns);
  if (groups.length < 2) return [{ lookup, field }];
  return groups.map(({ selections, standInAt }, index) => {
    const name = `${lookup.field}_${index}`;
    const value = { kind: Kind.VARIABLE, name: nameNode(name) } as const;
    return {
      lookup: { ...lookup, field: name, variable: name, requires: without(lookup.requires, standInAt, standIns) },
      field: {
        ...field,
        alias: nameNode(name),
        arguments: field.arguments?.map((argument) => ({ ...argument, value })) ?? [],
        selectionSet: { kind: Kind.SELECTION_SET, selections },
      },
    };
  });
}

/** Fields that one representation has all for. */
interface Group {
  readonly selections: SelectionNode[];
  /** By the path of what it stands for. */
  readonly standInAt: Map<string, string>;
}

function groupsOf(entities: SelectionSetNode, standIns: StandIns): readonly Group[] {
  const groups: Group[] = [];
  for (const { selection, required } of fieldsOf(entities, standIns)) {
    const fitting = groups.find(({ standInAt }) =>
      required.every(({ name, path }) => (standInAt.get(path) ?? name) === name),
    );
    const group: Group = fitting ?? { selections: [], standInAt: new Map() };
    if (fitting === undefined) groups.push(group);
    group.selections.push(selection);
    for (const { name, path } of required) group.standInAt.set(path, name);
  }
  return groups;
}

interface EntityField {
  /** In the fragments that it is in. */
  readonly selection: SelectionNode;
  readonly required: readonly RequiredStandIn[];
}

function fieldsOf({ selections }: SelectionSetNode, standIns: StandIns, type = ''): readonly EntityField[] {
  return selections.flatMap((selection): readonly EntityField[] => {
    if (selection.kind === Kind.FIELD) {
      return [{ selection, required: standIns.requiredBy.get(`${type}.${selection.name.value}`) ?? [] }];
    }
    if (selection.kind === Kind.FRAGMENT_SPREAD) return [];
    const within = fieldsOf(selection.selectionSet, standIns, selection.typeCondition?.name.value ?? type);
    return within.map(({ selection: field, required }) => ({
      selection: { ...selection, selectionSet: { kind: Kind.SELECTION_SET, selections: [field] } },
      required,
    }));
  });
}

/** Without the stand-ins that other representations have. */
function without(
  selections: readonly RequiresSelection[],
  kept: Group['standInAt'],
  standIns: StandIns,
): readonly RequiresSelection[] {
  const names = new Set(kept.values());
  return needed(selections);

  function needed(all: readonly RequiresSelection[]): RequiresSelection[] {
    return all.flatMap((selection): RequiresSelection[] => {
      if (selection.kind === 'FragmentSpread') return [selection];
      const name = selection.kind === 'Field' ? (selection.alias ?? selection.name) : '';
      if (standIns.fields.has(name) && !names.has(name)) return [];
      if (selection.selections === undefined || selection.selections.length === 0) return [selection];
      const below = needed(selection.selections);
      return below.length === 0 ? [] : [{ ...selection, selections: below }];
    });
  }
}
