import { readFile } from 'node:fs/promises';
import type { StoredTemplate } from './domain/templates/catalogue.ts';
import { type Published, publishTemplate, type TemplateDefinition } from './domain/templates/templates.ts';
import type { VariablesSchema } from './domain/templates/variables.ts';

/** Templates that are there without anybody publishing them. */
export const readyTemplates = ['welcome', 'password-reset', 'receipt', 'invoice', 'payment-failed'] as const;

type ReadyTemplate = (typeof readyTemplates)[number];

const LOCALE = 'en';
const directory = new URL('../templates/', import.meta.url);
/** When they were written: before anybody's own, so lists end with them. */
const MADE_AT = new Date('2026-11-27T00:00:00Z');

/** What an author would publish. @throws when its files are not there. */
async function readReadyTemplate(name: ReadyTemplate): Promise<TemplateDefinition & { variables: VariablesSchema }> {
  const [mjml, about] = await Promise.all([readPart(`${name}.mjml`), readPart(`${name}.json`)]);
  const { subject, variables }: { subject: string; variables: VariablesSchema } = JSON.parse(about);
  return { locales: { [LOCALE]: { subject, mjml } }, defaultLocale: LOCALE, variables };
}

/** The file that {@link loadReadyTemplate} has the HTML of a ready template from. */
export function compiledFileOf(name: ReadyTemplate): URL {
  return new URL(`${name}.gen.html`, directory);
}

/**
 * Reads a ready template whose MJML was compiled when it was written (`npm run generate`): what
 * compiles it takes a third of the memory of a replica.
 *
 * @throws when its files are not there or not right.
 */
export async function loadReadyTemplate(name: ReadyTemplate): Promise<StoredTemplate> {
  const definition = await readReadyTemplate(name);
  const html = await readFile(compiledFileOf(name), 'utf8');
  const { subject = '' } = definition.locales[LOCALE] ?? {};
  const published = publishedOf(
    name,
    await publishTemplate({ ...definition, locales: { [LOCALE]: { subject, html } } }),
  );
  return { name, version: 0, createdAt: MADE_AT, updatedAt: MADE_AT, definition, published };
}

/** Compiles a ready template anew. @returns its HTML. @throws when it is not right. */
export async function compileReadyTemplate(name: ReadyTemplate): Promise<string> {
  const { locales } = publishedOf(name, await publishTemplate(await readReadyTemplate(name)));
  return locales[LOCALE]?.html ?? '';
}

function publishedOf(name: ReadyTemplate, result: Published): StoredTemplate['published'] {
  if ('template' in result) return result.template;
  throw new Error(`${name}: ${result.faults.map(({ path, message }) => `${path} ${message}`).join(', ')}`);
}

function readPart(file: string): Promise<string> {
  return readFile(new URL(file, directory), 'utf8');
}
