import { Liquid, type Template } from 'liquidjs';

/** Of one source, in characters. */
const PARSE_LIMIT = 262_144;
const RENDER_LIMIT_MS = 250;
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
    ...(escaping === 'html' && { outputEscape: 'escape' }),
    strictVariables: true,
    strictFilters: true,
    // An optional value can be asked for by `if`.
    lenientIf: true,
    ownPropertyOnly: true,
    parseLimit: PARSE_LIMIT,
    renderLimit: RENDER_LIMIT_MS,
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

/** @throws an error of LiquidJS, also where a limit is passed or a variable is not there. */
export function renderLiquid({ templates }: LiquidSource, escaping: Escaping, variables: object): string {
  const rendered: unknown = engines[escaping].renderSync([...templates], variables);
  const text = String(rendered);
  if (text.length > LONGEST_OUTPUT) throw new Error(`more than ${LONGEST_OUTPUT} characters come out`);
  return text;
}
