import {
  type ConstDirectiveNode,
  type DefinitionNode,
  type DocumentNode,
  type FieldDefinitionNode,
  type FieldNode,
  type InterfaceTypeDefinitionNode,
  Kind,
  type ObjectTypeDefinitionNode,
  parse,
  print,
  type SelectionSetNode,
} from 'graphql/index.js';
import { withDefinitions } from './definitions.ts';
import { argumentOf, nameNode, typeNameOf } from './join-directives.ts';

/**
 * Fields that the planner gets in place of those with arguments that `@requires` asks for. It would take
 * one for the same field with other arguments, of a client or of another requirement.
 */
export interface StandIns {
  /** What each stands for, by its name. */
  readonly fields: ReadonlyMap<string, FieldNode>;
  /** Those that a field requires, by its coordinate. */
  readonly requiredBy: ReadonlyMap<string, readonly RequiredStandIn[]>;
}

export interface RequiredStandIn {
  readonly name: string;
  /** The path of the field that it stands for, in the representation of an entity. */
  readonly path: string;
}

type Definition = ObjectTypeDefinitionNode | InterfaceTypeDefinitionNode;

/** Puts stand-ins into a supergraph. @returns the document itself where there are none. */
export function withStandIns(document: DocumentNode): { readonly document: DocumentNode; readonly standIns: StandIns } {
  const writer = new StandInWriter(document);
  const requiring = withDefinitions(document, (node) => (isDefinition(node) ? writer.requiring(node) : node));
  const { fields, requiredBy } = writer;
  if (fields.size === 0) return { document, standIns: { fields, requiredBy } };
  const whole = withDefinitions(requiring, (node) => (isDefinition(node) ? writer.completed(node) : node));
  return { document: whole, standIns: { fields, requiredBy } };
}

function isDefinition(node: DefinitionNode): node is Definition {
  return node.kind === Kind.OBJECT_TYPE_DEFINITION || node.kind === Kind.INTERFACE_TYPE_DEFINITION;
}

class StandInWriter {
  readonly fields = new Map<string, FieldNode>();
  readonly requiredBy = new Map<string, RequiredStandIn[]>();
  readonly #definitions = new Map<string, Definition>();
  /** By what they stand for, with its arguments. */
  readonly #names = new Map<string, string>();
  /** Those that are required of a type. */
  readonly #byType = new Map<string, Set<string>>();

  constructor({ definitions }: DocumentNode) {
    for (const definition of definitions)
      if (isDefinition(definition)) this.#definitions.set(definition.name.value, definition);
  }

  /** The type with stand-ins in its requirements. */
  requiring<Type extends Definition>(type: Type): Type {
    const { fields = [] } = type;
    return { ...type, fields: fields.map((field) => this.#requiring(field, type.name.value)) };
  }

  /** The type with its stand-ins, and those of its interfaces: each is resolved as what it stands for. */
  completed<Type extends Definition>(type: Type): Type {
    const { fields = [], interfaces = [] } = type;
    const names = new Set([type, ...interfaces].flatMap(({ name }) => [...(this.#byType.get(name.value) ?? [])]));
    const added = [...names].flatMap((name) => {
      const field = fields.find((one) => one.name.value === this.fields.get(name)?.name.value);
      return field === undefined ? [] : [{ ...field, name: nameNode(name), arguments: [] }];
    });
    return { ...type, fields: [...fields, ...added] };
  }

  #requiring(field: FieldDefinitionNode, type: string): FieldDefinitionNode {
    const required: RequiredStandIn[] = [];
    const directives = field.directives?.map((directive): ConstDirectiveNode => {
      const text = argumentOf(directive, 'requires');
      if (text === undefined) return directive;
      const set = this.#rewritten(selectionOf(text), { type, path: '' }, required);
      const value = { kind: Kind.STRING, value: set.selections.map(print).join(' ') } as const;
      const given = directive.arguments?.map((one) => (one.name.value === 'requires' ? { ...one, value } : one));
      return { ...directive, arguments: given ?? [] };
    });
    if (required.length === 0) return field;
    this.requiredBy.set(`${type}.${field.name.value}`, required);
    return { ...field, directives: directives ?? [] };
  }

  /** @param required gets the stand-ins of the set. */
  #rewritten(
    { kind, selections }: SelectionSetNode,
    { type, path }: { readonly type: string; readonly path: string },
    required: RequiredStandIn[],
  ): SelectionSetNode {
    const rewritten = selections.map((selection) => {
      if (selection.kind === Kind.FRAGMENT_SPREAD) return selection;
      if (selection.kind === Kind.INLINE_FRAGMENT) {
        const within = { type: selection.typeCondition?.name.value ?? type, path };
        return { ...selection, selectionSet: this.#rewritten(selection.selectionSet, within, required) };
      }
      const field = this.#definitions.get(type)?.fields?.find(({ name }) => name.value === selection.name.value);
      if (field === undefined) return selection;
      const below = { type: typeNameOf(field.type), path: `${path}.${selection.name.value}` };
      const selectionSet = selection.selectionSet && this.#rewritten(selection.selectionSet, below, required);
      const asked = selectionSet === undefined ? selection : { ...selection, selectionSet };
      if (field.arguments === undefined || field.arguments.length === 0) return asked;
      const name = this.#standIn(selection, type);
      required.push({ name, path: below.path });
      return { ...asked, name: nameNode(name), arguments: [] };
    });
    return { kind, selections: rewritten };
  }

  #standIn({ kind, name, arguments: given = [] }: FieldNode, type: string): string {
    const field: FieldNode = { kind, name, arguments: given };
    const text = print(field);
    const standIn = this.#names.get(text) ?? `_required${this.#names.size}_${name.value}`;
    this.#names.set(text, standIn);
    this.fields.set(standIn, field);
    this.#byType.set(type, (this.#byType.get(type) ?? new Set()).add(standIn));
    return standIn;
  }
}

function selectionOf(fieldSet: string): SelectionSetNode {
  const [operation] = parse(`{ ${fieldSet} }`, { noLocation: true }).definitions;
  return operation?.kind === Kind.OPERATION_DEFINITION
    ? operation.selectionSet
    : { kind: Kind.SELECTION_SET, selections: [] };
}
