import { Liquid, RenderError, type Template } from 'liquidjs';

/** Of one source, in characters. */
const PARSE_LIMIT = 262_144;
/** Objects and characters that filters make. */
const MEMORY_LIMIT = 2_000_000;
/** Of what comes out, in characters. */
const LONGEST_OUTPUT = 1_048_576;

/** What templates may do. Others read files, or write values without escaping them. */
const TAGS = new Set(['#', 'assign', 'break', 'case', 'comment', 'continue', 'for', 'if', 'raw', 'unless']);

/** `html`: values arrive as the letters that they are; `text`: as they are. */
export type Escaping = 'html' | 'text';

const engines = { html: createEngine('html'), text: createEngine('text') };

function createEngine(escaping: Escaping): Liquid {
  const engine = new Liquid({
    outputEscape: (value: unknown) => (escaping === 'html' ? escapedHtml(printed(value)) : printed(value)),
    strictVariables: true,
    strictFilters: true,
    // An optional value can be asked for by `if`.
    lenientIf: true,
    ownPropertyOnly: true,
    parseLimit: PARSE_LIMIT,
    memoryLimit: MEMORY_LIMIT,
    // Nothing is ever read from files.
    templates: {},
  });
  for (const tag of Object.keys(engine.tags)) {
    if (!TAGS.has(tag)) Reflect.deleteProperty(engine.tags, tag);
  }
  Reflect.deleteProperty(engine.filters, 'raw');
  return engine;
}

/** Something is to be printed that is no text, number or truth value. */
export class NoTextError extends Error {
  /** The variable as the source names it; undefined where it is an expression. */
  readonly variable: string | undefined;

  constructor(variable?: string) {
    super('must be a text or a number where it is printed');
    this.name = 'NoTextError';
    this.variable = variable;
  }
}

/** What LiquidJS would make nothing of, or `[object Object]`, would be a gap in the mail. */
function printed(value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new NoTextError();
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
};

function escapedHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

/** An object of a value: filters make texts of whatever they get. */
class Fields {
  toString(): string {
    throw new NoTextError();
  }
}

function withoutText(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutText);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([name, field]) => [name, withoutText(field)]);
  return Object.assign(new Fields(), Object.fromEntries(fields));
}

/** A source that was read. */
export interface LiquidSource {
  /** The variables that it needs of its caller, without what is in them. */
  readonly variables: readonly string[];
  readonly templates: readonly Template[];
}

/** @throws an error of LiquidJS, in words for the template's author. */
export function parseLiquid(source: string, escaping: Escaping): LiquidSource {
  const engine = engines[escaping];
  const templates = engine.parse(source);
  return { templates, variables: engine.globalVariablesSync(templates) };
}

/** @throws NoTextError, or an error of LiquidJS: also where a limit is passed or a variable is not there. */
export function renderLiquid({ templates }: LiquidSource, escaping: Escaping, variables: object): string {
  // `split` cuts between UTF-16 units, and so through an emoji.
  const text = String(renderedBy(engines[escaping], templates, variables)).toWellFormed();
  if (text.length > LONGEST_OUTPUT) throw new Error(`more than ${LONGEST_OUTPUT} characters come out`);
  return text;
}

function renderedBy(engine: Liquid, templates: readonly Template[], variables: object): unknown {
  try {
    return engine.renderSync([...templates], Object(withoutText(variables)));
  } catch (error) {
    if (error instanceof RenderError && error.originalError instanceof NoTextError)
      throw new NoTextError(/^\{\{-?\s*([\w.-]*\w)/.exec(error.token.getText())?.[1]);
    throw error;
  }
}
