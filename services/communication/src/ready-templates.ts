import { readFile } from 'node:fs/promises';
import { type PublishedTemplate, publishTemplate } from './domain/templates/templates.ts';
import type { VariablesSchema } from './domain/templates/variables.ts';

/** Templates that are there without anybody publishing them. */
export const readyTemplates = ['welcome', 'password-reset', 'receipt', 'invoice', 'payment-failed'] as const;

const directory = new URL('../templates/', import.meta.url);

/**
 * Reads and compiles a ready template.
 *
 * @throws when its files are not there or not right.
 */
export async function loadReadyTemplate(name: (typeof readyTemplates)[number]): Promise<PublishedTemplate> {
  const [mjml, about] = await Promise.all([
    readFile(new URL(`${name}.mjml`, directory), 'utf8'),
    readFile(new URL(`${name}.json`, directory), 'utf8'),
  ]);
  const { subject, variables }: { subject: string; variables: VariablesSchema } = JSON.parse(about);
  const published = await publishTemplate({ locales: { en: { subject, mjml } }, defaultLocale: 'en', variables });
  if ('template' in published) return published.template;
  throw new Error(`${name}: ${published.faults.map(({ path, message }) => `${path} ${message}`).join(', ')}`);
}
