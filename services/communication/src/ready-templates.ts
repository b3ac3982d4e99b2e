import { readFile } from 'node:fs/promises';
import type { StoredTemplate } from './domain/templates/catalogue.ts';
import { publishTemplate, type TemplateDefinition } from './domain/templates/templates.ts';
import type { VariablesSchema } from './domain/templates/variables.ts';

/** Templates that are there without anybody publishing them. */
export const readyTemplates = ['welcome', 'password-reset', 'receipt', 'invoice', 'payment-failed'] as const;

const directory = new URL('../templates/', import.meta.url);
/** When they were written: before anybody's own, so lists end with them. */
const MADE_AT = new Date('2026-11-27T00:00:00Z');

/**
 * Reads and compiles a ready template.
 *
 * @throws when its files are not there or not right.
 */
export async function loadReadyTemplate(name: (typeof readyTemplates)[number]): Promise<StoredTemplate> {
  const [mjml, about] = await Promise.all([
    readFile(new URL(`${name}.mjml`, directory), 'utf8'),
    readFile(new URL(`${name}.json`, directory), 'utf8'),
  ]);
  const { subject, variables }: { subject: string; variables: VariablesSchema } = JSON.parse(about);
  const definition: TemplateDefinition = { locales: { en: { subject, mjml } }, defaultLocale: 'en', variables };
  const result = await publishTemplate(definition);
  if ('template' in result)
    return { name, version: 0, createdAt: MADE_AT, updatedAt: MADE_AT, definition, published: result.template };
  throw new Error(`${name}: ${result.faults.map(({ path, message }) => `${path} ${message}`).join(', ')}`);
}
