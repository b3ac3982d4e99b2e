import { type Vault, VaultError } from '@rollcall/platform/vault.ts';
import { unsubscribeWordsIn } from './unsubscribe-words.ts';

/** What a link to unsubscribe is about. */
export interface Subscription {
  readonly subject: string;
  /** Mail address. */
  readonly recipient: string;
  /** That has the link. */
  readonly messageId: string;
}

/** Links by which recipients of marketing opt out: they carry all that is needed, and nothing is stored. */
export interface UnsubscribeLinks {
  urlOf(subscription: Subscription): string;
  /** @param token of a URL. @returns undefined where it is none of ours. */
  read(token: string): Subscription | undefined;
  /** Of previews: it leads to a page that says that the link is none. */
  readonly exampleUrl: string;
}

/** Sealed text belongs to a purpose: what was sealed for another one cannot be opened here. */
const CONTEXT = 'unsubscribe';
const TOKEN = /^[\w-]{1,2048}$/;

/**
 * @param vault whose keys have to stay as long as links are to work: mails are kept for years.
 * @param publicUrl of the gateway, without a slash at its end.
 */
export function createUnsubscribeLinks(vault: Vault, publicUrl: string): UnsubscribeLinks {
  return {
    exampleUrl: `${publicUrl}/unsubscribe/preview`,
    urlOf({ subject, recipient, messageId }) {
      const sealed = vault.seal(JSON.stringify([subject, recipient, messageId]), CONTEXT);
      return `${publicUrl}/unsubscribe/${sealed.toString('base64url')}`;
    },
    read(token) {
      if (!TOKEN.test(token)) return undefined;
      try {
        const opened = vault.open(Buffer.from(token, 'base64url'), CONTEXT).toString();
        const [subject, recipient, messageId]: [string, string, string] = JSON.parse(opened);
        return { subject, recipient, messageId };
      } catch (error) {
        if (error instanceof VaultError) return undefined;
        throw error;
      }
    },
  };
}

interface UnsubscribeLink {
  readonly url: string;
  /** Of the mail; English where absent, or not known here. */
  readonly locale?: string | undefined;
}

/** Pure. A mail whose every part has the link: where its author did not place it, it comes at the end. */
export function withUnsubscribeLink<Mail extends { readonly text: string; readonly html?: string }>(
  mail: Mail,
  { url, locale }: UnsubscribeLink,
): Mail {
  const { text, html } = mail;
  const { unsubscribe: words } = unsubscribeWordsIn(locale === undefined ? [] : [locale]);
  return {
    ...mail,
    text: text.includes(url) ? text : `${text}\n\n${words}: ${url}`,
    ...(html !== undefined && {
      html: html.includes(url) ? html : atEnd(html, `<p><a href="${url}">${words}</a></p>`),
    }),
  };
}

/** Within the body, where the HTML has one. */
function atEnd(html: string, part: string): string {
  const end = html.toLowerCase().lastIndexOf('</body');
  return end < 0 ? `${html}${part}` : `${html.slice(0, end)}${part}${html.slice(end)}`;
}

/** Pure. As much of an address as tells its owner which one it is, and nobody else. */
export function maskedAddress(address: string): string {
  const at = address.lastIndexOf('@');
  return `${address.slice(0, 1)}…${address.slice(at)}`;
}
