import { type DocumentNode, Kind, type SelectionNode, visit } from 'graphql/index.js';
import type { JsonObject } from './types.ts';

/** The variables of @skip and @include. */
export function conditionsOf(document: DocumentNode): readonly string[] {
  const names = new Set<string>();
  visit(document, {
    Directive({ name, arguments: given }) {
      const condition = given?.[0]?.value;
      if (isCondition(name.value) && condition?.kind === Kind.VARIABLE) names.add(condition.name.value);
    },
  });
  return [...names];
}

/** Whether @skip and @include leave a selection in. */
export function isIncluded({ directives = [] }: SelectionNode, variables: Readonly<JsonObject>): boolean {
  return directives.every((directive) => {
    const name = directive.name.value;
    if (!isCondition(name)) return true;
    const condition = directive.arguments?.[0]?.value;
    const isTrue =
      condition?.kind === Kind.VARIABLE
        ? variables[condition.name.value] === true
        : condition?.kind === Kind.BOOLEAN && condition.value;
    return isTrue === (name === 'include');
  });
}

/** Whether it is the name of @skip or @include. */
export function isCondition(name: string): boolean {
  return name === 'skip' || name === 'include';
}
