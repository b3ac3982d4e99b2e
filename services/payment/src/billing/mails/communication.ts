import type { Clock } from '@rollcall/platform/clock.ts';
import { ask, type HttpAnswer, NoAnswerError } from '@rollcall/platform/outbound/exchange.ts';
import { type ClientConfig, tokenEndpoint } from '@rollcall/platform/service/gateway-client.ts';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { Agent } from 'undici';

const TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 3000;
const LIMIT_BYTES = 64 * 1024;
/** A token is not used for so long before its end. */
const MARGIN_MS = 30_000;

/** A mail by a template of communication. */
interface TemplateMail {
  /** The same mail has the same id: communication sends it once. */
  readonly id: string;
  readonly to: string;
  readonly template: string;
  readonly locale: string;
  readonly variables: Readonly<Record<string, unknown>>;
}

/**
 * What became of handing a mail over. `refused`: it would be refused again. `failed`: later it may be
 * taken, and the same id is sent once, whether it was taken or not.
 */
export type MailOutcome =
  | { readonly outcome: 'accepted' }
  | { readonly outcome: 'refused' | 'failed'; readonly status: number | undefined };

export interface Communication {
  send(mail: TemplateMail): Promise<MailOutcome>;
}

export interface CommunicationOptions {
  /** A URL of the gateway, which finds communication by the registry. */
  readonly gateway: URL;
  /** Payment's own (docs/decisions/0357). */
  readonly client: ClientConfig;
  readonly clock: Clock;
}

const Token = Type.Object({ access_token: Type.String(), expires_in: Type.Number() });

/** Communication, as payment reaches it: like every other client of the gateway. */
export async function createCommunication({ gateway, client, clock }: CommunicationOptions): Promise<Communication> {
  const dispatcher = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS } });
  const askForToken = await tokenEndpoint(client, gateway, dispatcher);
  let kept: { readonly token: string; readonly untilMs: number } | undefined;

  const post = (path: string, headers: Record<string, string>, body: string): Promise<HttpAnswer> =>
    ask(
      dispatcher,
      { method: 'POST', url: new URL(path, gateway), headers, body, timeoutMs: TIMEOUT_MS, limitBytes: LIMIT_BYTES },
      new AbortController().signal,
    );

  async function tokenOf(): Promise<string | undefined> {
    if (kept !== undefined && clock.monotonicMs() < kept.untilMs) return kept.token;
    const answer = await askForToken({ grant_type: 'client_credentials', scope: 'messages:send' });
    const token: unknown = answer.status === 200 ? JSON.parse(answer.body) : undefined;
    if (!Value.Check(Token, token)) return undefined;
    kept = { token: token.access_token, untilMs: clock.monotonicMs() + token.expires_in * 1000 - MARGIN_MS };
    return kept.token;
  }

  return {
    async send({ id, ...mail }) {
      try {
        const token = await tokenOf();
        if (token === undefined) return { outcome: 'failed', status: 401 };
        const headers = {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'idempotency-key': id,
        };
        const { status } = await post('/api/v1/communication/emails', headers, JSON.stringify(mail));
        if (status === 401) kept = undefined;
        return outcomeOf(status);
      } catch (error) {
        if (error instanceof NoAnswerError || error instanceof SyntaxError)
          return { outcome: 'failed', status: undefined };
        throw error;
      }
    },
  };
}

/** Faults of the request stay; who may send, and how much, changes. */
const STAYING: ReadonlySet<number> = new Set([400, 413, 415, 422]);

function outcomeOf(status: number): MailOutcome {
  if (status >= 200 && status < 300) return { outcome: 'accepted' };
  return { outcome: STAYING.has(status) ? 'refused' : 'failed', status };
}
