import { HttpError } from '@rollcall/platform/http/errors.ts';
import { type Html, html, type Page, sendPage } from '@rollcall/platform/http/pages.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import { isDatabaseUnavailable } from '@rollcall/platform/postgres/pool.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import type { FastifyRequest } from 'fastify';
import { type SuppressionStore, scopeOfReason } from '../domain/suppressions.ts';
import { maskedAddress, type Subscription, type UnsubscribeLinks } from '../domain/unsubscribe.ts';
import { type UnsubscribeWords, unsubscribeWordsIn } from '../domain/unsubscribe-words.ts';
import { acceptedLanguages } from './accept-language.ts';

export interface UnsubscribePagesDeps {
  readonly links: UnsubscribeLinks;
  readonly suppressions: SuppressionStore;
}

/** Either kind that RFC 8058, section 3.1 allows. */
const FORMS = ['application/x-www-form-urlencoded', 'multipart/form-data'];
const BODY_LIMIT_BYTES = 4096;
const REASON = 'unsubscribe';

interface TokenRoute {
  readonly Params: { readonly token: string };
}

/**
 * Pages behind the links of marketing mails. Looking changes nothing: programs that check mails
 * follow all links. One click (RFC 8058) and the button of the page are the same POST.
 */
export function unsubscribePages({ links, suppressions }: UnsubscribePagesDeps): Routes {
  return (app) =>
    void app.register((scope, _options, done) => {
      acceptForms(scope);
      scope.get<TokenRoute>('/unsubscribe/:token', (request, reply) => {
        const subscription = links.read(request.params.token);
        const { unknownLink, question } = pagesFor(request);
        return sendPage(reply, subscription === undefined ? unknownLink : question(subscription));
      });
      scope.post<TokenRoute>('/unsubscribe/:token', { bodyLimit: BODY_LIMIT_BYTES }, async (request, reply) => {
        const subscription = links.read(request.params.token);
        const { unknownLink, question, unsubscribed, subscribed } = pagesFor(request);
        if (subscription === undefined) return sendPage(reply, unknownLink);
        const form = await formOf(request);
        if (form?.get('List-Unsubscribe') === 'One-Click') {
          await suppressions.add({ ...addresseeOf(subscription), messageId: subscription.messageId, ...because });
          return sendPage(reply, unsubscribed(subscription));
        }
        if (form?.get('subscribe') !== 'again') return sendPage(reply, { ...question(subscription), status: 400 });
        await suppressions.remove(addresseeOf(subscription), { reason: REASON });
        return sendPage(reply, subscribed(subscription));
      });
      done();
    });
}

const because = { reason: REASON, scope: scopeOfReason[REASON] } as const;

function addresseeOf({ subject, recipient }: Subscription) {
  return { subject, recipient, channel: 'email' } as const;
}

/** People see pages, whatever goes wrong. */
function acceptForms(scope: App): void {
  scope.addContentTypeParser(FORMS, { parseAs: 'buffer' }, (_request, body, parsed) => parsed(null, body));
  scope.setErrorHandler((error, request, reply) => {
    if (error instanceof HttpError || !isDatabaseUnavailable(error)) throw error;
    request.log.warn({ reqId: request.id }, 'an opt-out could not be kept');
    return sendPage(reply.header('retry-after', '5'), pagesFor(request).unavailable);
  });
}

/** @returns undefined where it is none. */
async function formOf({ body, headers }: FastifyRequest): Promise<FormData | undefined> {
  if (!Buffer.isBuffer(body)) return undefined;
  const { 'content-type': type = '' } = headers;
  try {
    return await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
  } catch {
    return undefined;
  }
}

/** In the language of who reads it. */
function pagesFor({ headers }: Pick<FastifyRequest, 'headers'>): UnsubscribePages {
  return pagesIn(unsubscribeWordsIn(acceptedLanguages(headers['accept-language'])));
}

interface UnsubscribePages {
  readonly question: (subscription: Subscription) => Page;
  readonly unsubscribed: (subscription: Subscription) => Page;
  readonly subscribed: (subscription: Subscription) => Page;
  readonly unknownLink: Page;
  readonly unavailable: Page;
}

function pagesIn(words: UnsubscribeWords): UnsubscribePages {
  const { language } = words;
  const oneClick = buttonOf(['List-Unsubscribe', 'One-Click'], words.unsubscribe);
  const again = buttonOf(['subscribe', 'again'], words.again);
  return {
    question: (subscription) => ({
      status: 200,
      language,
      title: words.unsubscribe,
      body: html`<p>${said(words.question, subscription)}</p>
${oneClick}
<p>${words.note}</p>`,
    }),
    unsubscribed: (subscription) => ({
      status: 200,
      language,
      title: words.unsubscribed,
      body: html`<p role="status">${said(words.stopped, subscription)}</p>
${again}`,
    }),
    subscribed: (subscription) => ({
      status: 200,
      language,
      title: words.subscribed,
      body: html`<p role="status">${said(words.resumed, subscription)}</p>
${oneClick}`,
    }),
    unknownLink: { status: 404, language, title: words.badLink, body: html`<p>${words.badLinkHelp}</p>` },
    unavailable: { status: 503, language, title: words.tryAgain, body: html`<p role="alert">${words.notKept}</p>` },
  };
}

function said(text: string, { recipient }: Subscription): string {
  return text.replace('{address}', () => maskedAddress(recipient));
}

function buttonOf([name, value]: readonly [string, string], text: string): Html {
  return html`<form method="post">
<input type="hidden" name="${name}" value="${value}">
<button>${text}</button>
</form>`;
}
