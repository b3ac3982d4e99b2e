import { HttpError } from '@rollcall/platform/http/errors.ts';
import { html, type Page, sendPage } from '@rollcall/platform/http/pages.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import { isDatabaseUnavailable } from '@rollcall/platform/postgres/pool.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import type { FastifyRequest } from 'fastify';
import { type SuppressionStore, scopeOfReason } from '../domain/suppressions.ts';
import { maskedAddress, type Subscription, type UnsubscribeLinks } from '../domain/unsubscribe.ts';

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
        return sendPage(reply, subscription === undefined ? unknownLink : question(subscription));
      });
      scope.post<TokenRoute>('/unsubscribe/:token', { bodyLimit: BODY_LIMIT_BYTES }, async (request, reply) => {
        const subscription = links.read(request.params.token);
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
    return sendPage(reply.header('retry-after', '5'), unavailable);
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

function question({ recipient }: Subscription): Page {
  return {
    status: 200,
    title: 'Unsubscribe',
    body: html`<p>Stop marketing mail from this sender to ${maskedAddress(recipient)}?</p>
<form method="post">
<input type="hidden" name="List-Unsubscribe" value="One-Click">
<button>Unsubscribe</button>
</form>
<p>Receipts, codes and other mail that you ask for are not marketing, and still come.</p>`,
  };
}

function unsubscribed({ recipient }: Subscription): Page {
  return {
    status: 200,
    title: 'Unsubscribed',
    body: html`<p role="status">${maskedAddress(recipient)} gets no more marketing mail from this sender.</p>
<form method="post">
<input type="hidden" name="subscribe" value="again">
<button>Subscribe again</button>
</form>`,
  };
}

function subscribed({ recipient }: Subscription): Page {
  return {
    status: 200,
    title: 'Subscribed again',
    body: html`<p role="status">${maskedAddress(recipient)} gets marketing mail from this sender again.</p>
<form method="post">
<input type="hidden" name="List-Unsubscribe" value="One-Click">
<button>Unsubscribe</button>
</form>`,
  };
}

const unknownLink: Page = {
  status: 404,
  title: 'This link does not work',
  body: html`<p>Part of it may be missing. Use the link in the mail as it is.</p>`,
};

const unavailable: Page = {
  status: 503,
  title: 'Please try again',
  body: html`<p role="alert">This could not be kept just now. Try again in a moment.</p>`,
};
