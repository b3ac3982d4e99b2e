import { createHash } from 'node:crypto';

/** HTML whose values are escaped. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Value = string | Html | readonly Html[];

/** Tag for templates: values are text, but for what is HTML already. */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(strings.map((part, index) => part + rendered(values[index] ?? '')).join(''));
}

function rendered(value: Value): string {
  if (value instanceof Html) return value.text;
  if (typeof value !== 'string') return value.map(({ text }) => text).join('');
  return value.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

const STYLE = `
:root { color-scheme: light dark; font: 1.125rem/1.5 system-ui, sans-serif }
body { max-width: 32rem; margin: 0 auto; padding: 2rem 1rem; color: #1a1a1a; background: #fff }
h1 { font-size: 1.5rem }
dt { font-weight: 600 } dd { margin: 0 0 .75rem }
button, .button { font: inherit; padding: .6rem 1.2rem; margin: 0 .5rem .5rem 0; border: 2px solid #12427a;
  border-radius: .4rem; background: #12427a; color: #fff; cursor: pointer; text-decoration: none; display: inline-block }
button.other { background: transparent; color: inherit }
:focus-visible { outline: 3px solid #b35900; outline-offset: 2px }
@media (prefers-color-scheme: dark) {
  body { color: #f2f2f2; background: #161616 }
  button, .button { background: #9cc7ff; border-color: #9cc7ff; color: #10263f }
  :focus-visible { outline-color: #ffb366 }
}`;

/** Sends the one form of a page, which has a button for browsers without scripts. */
const SUBMIT_SCRIPT = 'document.forms[0].submit()';

/** A whole page. */
export interface Page {
  readonly title: string;
  readonly body: Html;
  /** Where its forms may go: origins, or `'self'`. */
  readonly formAction: string;
  /** Whether it has {@link SUBMIT_SCRIPT}. */
  readonly isSubmitted: boolean;
  /** Where the browser goes on to by itself, without a script. */
  readonly goesOnTo?: string;
}

export function renderPage({ title, body, isSubmitted, goesOnTo }: Page): string {
  const script = isSubmitted ? new Html(`<script>${SUBMIT_SCRIPT}</script>`) : new Html('');
  const refresh = goesOnTo === undefined ? '' : html`<meta http-equiv="refresh" content="0; url=${goesOnTo}">`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
${refresh}
<title>${title}</title>
${new Html(`<style>${STYLE}</style>`)}
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
${script}
</body>
</html>
`.text;
}

/** Of what is behind a link that is secret: nobody else keeps it, or learns its address. */
export const secretHeaders = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

/** Header fields by which the page does nothing but what it is for, and nobody else learns its address. */
export function pageHeaders({ formAction, isSubmitted }: Page): Record<string, string> {
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': [
      "default-src 'none'",
      `style-src ${hashOf(STYLE)}`,
      ...(isSubmitted ? [`script-src ${hashOf(SUBMIT_SCRIPT)}`] : []),
      `form-action ${formAction}`,
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
    ...secretHeaders,
  };
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
