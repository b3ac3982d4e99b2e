import {
  type ConstDirectiveNode,
  type DirectiveNode,
  type InterfaceTypeDefinitionNode,
  Kind,
  valueFromASTUntyped,
} from 'graphql/index.js';
import type { JsonObject } from './types.ts';

/** The subgraphs of an interface. */
interface InterfaceSubgraphs {
  /** `@join__type` of all of them. */
  readonly all: readonly ConstDirectiveNode[];
  /** Of those that know the interface as an object (@interfaceObject), without its types. */
  readonly asObject: readonly ConstDirectiveNode[];
}

export function subgraphsOf({ directives = [] }: InterfaceTypeDefinitionNode): InterfaceSubgraphs {
  const all = directives.filter(({ name }) => name.value === 'join__type');
  return { all, asObject: all.filter((type) => argumentOf(type, 'isInterfaceObject') === 'true') };
}

/** The value of an argument that is an enum value, a text or a Boolean, as text. */
export function argumentOf({ arguments: given }: ConstDirectiveNode, name: string): string | undefined {
  const value = given?.find((argument) => argument.name.value === name)?.value;
  if (value?.kind === Kind.BOOLEAN) return String(value.value);
  return value?.kind === Kind.ENUM || value?.kind === Kind.STRING ? value.value : undefined;
}

/** The arguments of the first directive of a name; undefined: there is no such directive. */
export function argumentsOf(directives: readonly DirectiveNode[] | undefined, name: string): JsonObject | undefined {
  const directive = directives?.find((each) => each.name.value === name);
  if (directive === undefined) return undefined;
  return Object.fromEntries(
    directive.arguments?.map((argument) => [argument.name.value, valueFromASTUntyped(argument.value)]) ?? [],
  );
}
