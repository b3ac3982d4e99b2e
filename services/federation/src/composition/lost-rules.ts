import { extractLinkImplementations } from '@theguild/federation-composition';
import { type DirectiveNode, type DocumentNode, type InterfaceTypeExtensionNode, Kind, visit } from 'graphql/index.js';
import type { CompositionError } from './compose.ts';

const FEDERATION = 'https://specs.apollo.dev/federation';
const RULES = ['@authenticated', '@requiresScopes', '@policy'];

/**
 * Pure. Rules of access that composition loses without a word, although whoever wrote them relies on
 * them: those of an extension of an interface, and those that name nothing.
 */
export function lostRules(subgraph: string, document: DocumentNode): readonly CompositionError[] {
  const { resolveImportName } = extractLinkImplementations(document);
  const rules = new Set(RULES.map((rule) => resolveImportName(FEDERATION, rule)));
  const isRule = ({ name }: DirectiveNode) => rules.has(name.value);
  const errors: CompositionError[] = [];
  visit(document, {
    InterfaceTypeExtension({ name, directives = [] }: InterfaceTypeExtensionNode) {
      for (const directive of directives.filter(isRule))
        errors.push({
          code: 'AUTH_REQUIREMENTS_APPLIED_ON_INTERFACE',
          message: `[${subgraph}] @${directive.name.value} cannot be applied to the interface "${name.value}"`,
        });
    },
    Directive(directive) {
      const lists = directive.arguments?.map(({ value }) => value) ?? [];
      if (!isRule(directive) || !lists.some((list) => list.kind === Kind.LIST && list.values.length === 0)) return;
      const message = `[${subgraph}] @${directive.name.value} has an empty list, by which nobody would have access`;
      errors.push({ code: 'EMPTY_AUTH_REQUIREMENTS', message });
    },
  });
  return errors;
}
