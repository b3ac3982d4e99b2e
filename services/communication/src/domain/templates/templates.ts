import { CONTROL } from '@rollcall/platform/text-rules.ts';
import { convert } from 'html-to-text';
import { type Escaping, type LiquidSource, NoTextError, parseLiquid, renderLiquid } from './liquid.ts';
import {
  declaredVariables,
  type Fault,
  schemaFaults,
  UNSUBSCRIBE_URL,
  type VariablesSchema,
  valueFaults,
} from './variables.ts';
import { TooLongError, withinTime } from './within-time.ts';

/** A mail in one language, in Liquid. */
export interface TemplateSource {
  readonly subject: string;
  /** One of both, or neither where there is a text. */
  readonly mjml?: string;
  readonly html?: string;
  /** Made of the HTML where absent. */
  readonly text?: string;
}

/** What an author publishes. */
export interface TemplateDefinition {
  /** By language tag (BCP 47), such as `en` or `en-ZA`. */
  readonly locales: Readonly<Record<string, TemplateSource>>;
  readonly defaultLocale: string;
  /** Where absent, every variable that a source names is required. */
  readonly variables?: VariablesSchema;
}

/** What is stored and rendered: MJML has become HTML, so no value ever meets it. */
export interface PublishedTemplate {
  readonly locales: Readonly<Record<string, PublishedSource>>;
  readonly defaultLocale: string;
  readonly variables: VariablesSchema;
}

type PublishedSource = Omit<TemplateSource, 'mjml'>;

export interface RenderedMail {
  /** Of the source that was taken. */
  readonly locale: string;
  readonly subject: string;
  readonly html?: string;
  readonly text: string;
}

export type Published = { readonly template: PublishedTemplate } | { readonly faults: readonly Fault[] };
export type Rendered = { readonly mail: RenderedMail } | { readonly faults: readonly Fault[] };

const LONGEST_SUBJECT = 255;
/** Of one locale. A large template of MJML takes a fifth of it. */
const PUBLISH_LIMIT_MS = 2000;
/** Of one mail, which takes some milliseconds. */
const RENDER_LIMIT_MS = 500;
/** As plain text is read: RFC 5322, section 2.1.1. */
const TEXT_WIDTH = 78;
/** Elements within elements: each takes a call, and more than the stack has would be an error. */
const DEEPEST_HTML = 100;
const LONGEST_MESSAGE = 2000;
/** Else MJML names the folder of the process in what it says. */
const NO_FILE = '/';
const CONTROLS = new RegExp(`[${CONTROL}]+`, 'gu');

/**
 * Checks a template and compiles its MJML, before any value is there. A preview renders the result
 * without storing it.
 *
 * @returns all faults at once, by JSON pointers into the definition.
 */
export async function publishTemplate({ locales, defaultLocale, variables }: TemplateDefinition): Promise<Published> {
  const faults: Fault[] = variables === undefined ? [] : [...under('/variables', schemaFaults(variables))];
  if (!Object.hasOwn(locales, defaultLocale)) {
    faults.push({ path: '/defaultLocale', message: 'must be one of the locales' });
  }
  const published: Record<string, PublishedSource> = {};
  const named = new Set<string>();
  for (const [locale, source] of Object.entries(locales)) {
    const path = `/locales/${locale}`;
    if (!isLanguageTag(locale)) faults.push({ path, message: 'must be a language tag, such as en-ZA' });
    const compiled = await compileSource(source);
    if ('faults' in compiled) {
      faults.push(...under(path, compiled.faults));
      continue;
    }
    published[locale] = compiled.source;
    const used = compiled.variables.filter((name) => name !== UNSUBSCRIBE_URL);
    for (const name of used) named.add(name);
    if (variables !== undefined) faults.push(...under(path, undeclared(used, variables)));
  }
  if (faults.length > 0) return { faults };
  return { template: { locales: published, defaultLocale, variables: variables ?? requiring([...named]) } };
}

type Compiled =
  | { readonly source: PublishedSource; readonly variables: readonly string[] }
  | { readonly faults: readonly Fault[] };

async function compileSource({ subject, mjml, html, text }: TemplateSource): Promise<Compiled> {
  if (mjml !== undefined && html !== undefined)
    return { faults: [{ path: '/html', message: 'must not be beside mjml' }] };
  if ((mjml ?? html ?? text) === undefined) return { faults: [{ path: '', message: 'must have mjml, html or text' }] };
  const compiled = mjml === undefined ? { html } : await compileMjml(mjml);
  if ('faults' in compiled) return compiled;
  const parts = [
    partOf('/subject', subject, 'text'),
    partOf(mjml === undefined ? '/html' : '/mjml', compiled.html, 'html'),
    partOf('/text', text, 'text'),
  ];
  const faults = parts.flatMap((part) => part.faults);
  if (faults.length > 0) return { faults };
  const source = {
    subject,
    ...(compiled.html !== undefined && { html: compiled.html }),
    ...(text !== undefined && { text }),
  };
  return { source, variables: parts.flatMap((part) => part.variables) };
}

interface Part {
  readonly variables: readonly string[];
  readonly faults: readonly Fault[];
}

function partOf(path: string, source: string | undefined, escaping: Escaping): Part {
  try {
    const variables =
      source === undefined ? [] : withinTime(PUBLISH_LIMIT_MS, () => parseLiquid(source, escaping).variables);
    return { variables, faults: [] };
  } catch (error) {
    return { variables: [], faults: [{ path, message: firstLine(error) }] };
  }
}

/** Includes are refused by name: leaving them out in silence would surprise their author. */
async function compileMjml(mjml: string): Promise<{ readonly html: string } | { readonly faults: readonly Fault[] }> {
  if (/<mj-include/i.test(mjml)) return { faults: [{ path: '/mjml', message: 'must not have mj-include' }] };
  try {
    // It takes a third of the memory of a replica, and most publish nothing.
    const { default: mjml2html } = await import('mjml');
    // All but the end of it is done before it first waits.
    const { html } = await withinTime(PUBLISH_LIMIT_MS, () =>
      mjml2html(mjml, {
        ignoreIncludes: true,
        useMjmlConfigOptions: false,
        validationLevel: 'strict',
        keepComments: false,
        fonts: {},
        filePath: NO_FILE,
      }),
    );
    return { html };
  } catch (error) {
    return { faults: [{ path: '/mjml', message: mjmlFault(error) }] };
  }
}

function undeclared(names: readonly string[], schema: VariablesSchema): readonly Fault[] {
  const declared = declaredVariables(schema);
  const missing = [...new Set(names)].filter((name) => !declared.has(name));
  return missing.map((name) => ({ path: '', message: `uses ${name}, which variables.properties does not have` }));
}

function requiring(names: readonly string[]): VariablesSchema {
  return { type: 'object', properties: Object.fromEntries(names.map((name) => [name, {}])), required: names };
}

/** Who the mail is for. */
export interface Reader {
  readonly variables: Readonly<Record<string, unknown>>;
  /** Language tag; the nearest that the template has is taken. */
  readonly locale?: string;
  /** Of marketing mails alone: what the variable `unsubscribeUrl` is. */
  readonly unsubscribeUrl?: string | undefined;
}

/**
 * Pure. Makes a mail of a template. A value arrives as the letters that it has, whatever they are.
 *
 * @returns all variables that are missing or wrong, by JSON pointers into the variables.
 */
export function renderTemplate(template: PublishedTemplate, reader: Reader): Rendered {
  try {
    return withinTime(RENDER_LIMIT_MS, () => renderedOf(template, reader));
  } catch (error) {
    if (error instanceof TooLongError) return { faults: [{ path: '', message: `rendering ${error.message}` }] };
    throw error;
  }
}

function renderedOf(template: PublishedTemplate, { variables: given, locale, unsubscribeUrl }: Reader): Rendered {
  const faults = valueFaults(template.variables, given);
  if (faults.length > 0) return { faults };
  const chosen = nearestLocale(template, locale);
  const source = template.locales[chosen];
  if (source === undefined) return { faults: [{ path: '', message: 'the template has no locale' }] };
  const variables = unsubscribeUrl === undefined ? given : { ...given, [UNSUBSCRIBE_URL]: unsubscribeUrl };
  try {
    const parsed = parsedOf(source);
    const html = parsed.html && renderLiquid(parsed.html, 'html', variables);
    const text = parsed.text === undefined ? textOfHtml(html ?? '') : renderLiquid(parsed.text, 'text', variables);
    const subject = headerText(renderLiquid(parsed.subject, 'text', variables));
    return { mail: { locale: chosen, subject, ...(html !== undefined && { html }), text } };
  } catch (error) {
    return { faults: [noText(error) ?? undefinedVariable(error) ?? { path: '', message: firstLine(error) }] };
  }
}

interface ParsedSource {
  readonly subject: LiquidSource;
  readonly html: LiquidSource | undefined;
  readonly text: LiquidSource | undefined;
}

/** By the source itself: both are forgotten together. */
const parsedSources = new WeakMap<PublishedSource, ParsedSource>();

function parsedOf(source: PublishedSource): ParsedSource {
  const known = parsedSources.get(source);
  if (known !== undefined) return known;
  const { subject, html, text } = source;
  const parsed = {
    subject: parseLiquid(subject, 'text'),
    html: html === undefined ? undefined : parseLiquid(html, 'html'),
    text: text === undefined ? undefined : parseLiquid(text, 'text'),
  };
  parsedSources.set(source, parsed);
  return parsed;
}

/** Lookup of RFC 4647, section 3.4: `en-ZA-x` falls back to `en-ZA`, `en`, and the default. */
function nearestLocale({ locales, defaultLocale }: PublishedTemplate, locale = defaultLocale): string {
  const byLowerCase = new Map(Object.keys(locales).map((name) => [name.toLowerCase(), name]));
  for (let subtags = locale.toLowerCase().split('-'); subtags.length > 0; subtags = subtags.slice(0, -1)) {
    const found = byLowerCase.get(subtags.join('-'));
    if (found !== undefined) return found;
  }
  return defaultLocale;
}

function isLanguageTag(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length === 1;
  } catch {
    return false;
  }
}

/** The text of a mail that has HTML alone. @throws TooLongError. */
export function plainTextOf(html: string): string {
  return withinTime(RENDER_LIMIT_MS, () => textOfHtml(html));
}

function textOfHtml(html: string): string {
  const heading = { options: { uppercase: false } };
  return convert(html, {
    wordwrap: TEXT_WIDTH,
    limits: { maxDepth: DEEPEST_HTML, ellipsis: '…' },
    selectors: [
      { selector: 'img', format: 'skip' },
      // What mail programs show in their lists beside the subject.
      { selector: 'div[style*="display:none"]', format: 'skip' },
      { selector: 'tr', format: 'block', options: { leadingLineBreaks: 1, trailingLineBreaks: 1 } },
      { selector: 'h1', ...heading },
      { selector: 'h2', ...heading },
      { selector: 'h3', ...heading },
      { selector: 'a', options: { hideLinkHrefIfSameAsText: true, linkBrackets: ['<', '>'] } },
    ],
  });
}

/** A header is one line, whatever a value holds. */
function headerText(text: string): string {
  return Array.from(text.replaceAll(CONTROLS, ' ').trim()).slice(0, LONGEST_SUBJECT).join('');
}

function undefinedVariable(error: unknown): Fault | undefined {
  const [, name] = /undefined variable: ([\w.[\]-]+)/.exec(errorText(error)) ?? [];
  if (name === undefined) return undefined;
  const message = name === UNSUBSCRIBE_URL ? 'is there in mails of the category marketing alone' : 'is missing';
  return { path: pointerOf(name), message };
}

function noText(error: unknown): Fault | undefined {
  if (!(error instanceof NoTextError)) return undefined;
  return { path: error.variable === undefined ? '' : pointerOf(error.variable), message: error.message };
}

function pointerOf(variable: string): string {
  return `/${variable.replaceAll('.', '/')}`;
}

function under(prefix: string, faults: readonly Fault[]): readonly Fault[] {
  return faults.map(({ path, message }) => ({ path: `${prefix}${path}`, message }));
}

/** MJML tells of every tag, and of the file that it takes the source for. */
function mjmlFault(error: unknown): string {
  return errorText(error)
    .replace(/^ValidationError:\s*/, '')
    .replaceAll(` of ${NO_FILE} (`, ' (');
}

function errorText(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, LONGEST_MESSAGE);
}

function firstLine(error: unknown): string {
  return errorText(error).split('\n', 1).join('');
}
