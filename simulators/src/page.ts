import type { FastifyReply } from 'fastify';

/** What a browser may do on a page of ours: no script, and forms only to where they lead. */
function contentSecurityPolicy(formTargets: readonly string[]): string {
  const targets = formTargets.map((url) => URL.parse(url)?.origin).filter((origin) => origin !== undefined);
  return [
    "default-src 'none'",
    "style-src 'unsafe-inline'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    // Chromium also judges where the answer to a form redirects to.
    `form-action 'self' ${[...new Set(targets)].join(' ')}`.trim(),
  ].join('; ');
}

/** Text that is HTML already. */
class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type { Html };

type Content = string | number | Html | readonly Html[];

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** HTML whose values are escaped, unless they are HTML themselves. */
export function html(parts: TemplateStringsArray, ...values: readonly Content[]): Html {
  const rendered = values.map((value) => {
    if (value instanceof Html) return value.text;
    if (typeof value === 'object') return value.map(({ text }) => text).join('');
    return String(value).replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
  });
  return new Html(String.raw({ raw: parts }, ...rendered));
}

/** A page as a simulator shows it, which says that no money moves. */
export interface Page {
  readonly title: string;
  readonly body: Html;
  /** Where its forms lead in the end. */
  readonly formTargets?: readonly string[];
}

/** Sends the page, with the header fields that it needs. */
export function sendPage(reply: FastifyReply, { title, body, formTargets = [] }: Page): FastifyReply {
  const { text } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>
:root { color-scheme: light dark; font: 1.1rem/1.5 system-ui, sans-serif }
main { max-width: 32rem; margin: 3rem auto; padding: 0 1rem }
button { font: inherit; padding: .5rem 1.25rem; margin: .25rem .5rem .25rem 0 }
fieldset { margin: 1rem 0; border: 1px solid; border-radius: .5rem }
label { display: block }
</style>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
<p><small>This is a simulator. No money moves.</small></p>
</main>
</body>
</html>
`;
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': contentSecurityPolicy(formTargets),
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  };
  return reply.headers(headers).send(text);
}
