import { hash } from 'node:crypto';
import type { FastifyReply } from 'fastify';

const STYLE = `
:root { color-scheme: light dark; font: 1.1rem/1.5 system-ui, sans-serif }
main { max-width: 32rem; margin: 3rem auto; padding: 0 1rem }
button { font: inherit; padding: .5rem 1.25rem; min-height: 2.75rem }
`;

/** What a browser may do on a page of ours: no script, our own style, and forms to where the page is. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The path of a page may be a secret: it is kept from caches, search engines and other sites. */
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'x-robots-tag': 'noindex, nofollow',
};

/** Text that is HTML already. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** HTML whose values are escaped, unless they are HTML themselves. */
export function html(parts: TemplateStringsArray, ...values: readonly (string | Html)[]): Html {
  const rendered = values.map((value) =>
    value instanceof Html ? value.text : value.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? ''),
  );
  return new Html(String.raw({ raw: parts }, ...rendered));
}

/** A page for people. */
export interface Page {
  readonly status: number;
  /** BCP 47; English when absent. */
  readonly language?: string;
  readonly title: string;
  readonly body: Html;
}

/** Sends a page, with the header fields that keep others from using it. */
export function sendPage(reply: FastifyReply, { status, language = 'en', title, body }: Page): FastifyReply {
  const { text } = html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${new Html(STYLE)}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`;
  return reply.status(status).headers(HEADERS).send(text);
}
