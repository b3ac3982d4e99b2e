import type { Clock } from '@rollcall/platform/clock.ts';
import type { HttpAnswer } from '@rollcall/platform/outbound/exchange.ts';
import { importPKCS8, SignJWT } from 'jose';
import type { Dispatcher } from 'undici';
import type { SendOutcome } from '../domain/ports.ts';
import { callProvider, jsonFields, textOf } from './http-call.ts';

/** Of a service account of Google, from its key file. */
export interface ServiceAccount {
  readonly clientEmail: string;
  /** PKCS #8 as PEM. */
  readonly privateKey: string;
  /** `https://oauth2.googleapis.com/token`. */
  readonly tokenUri: string;
}

interface Deps {
  readonly dispatcher: Dispatcher;
  readonly clock: Clock;
  readonly timeoutMs: number;
}

const SCOPE = 'https://www.googleapis.com/auth/firebase.messaging';
const LIFETIME_SECONDS = 3600;
/** Before it ends, a token is no longer used. */
const MARGIN_MS = 5 * 60 * 1000;

/** Of RFC 6749, appendix A.12: nothing that a header field could not have. */
const TOKEN = /^[ -~]{1,8192}$/;

/** Why there is no token: nothing was sent then. */
type NoToken = Extract<SendOutcome, { readonly outcome: 'refused' | 'failed' }>;

/** Access tokens of a service account (RFC 7523), one at a time. */
export interface ServiceAccountTokens {
  /** @returns a token, or the outcome of what it was for. */
  get(): Promise<string | NoToken>;
  /** The token was not accepted. */
  forget(): void;
}

export function createServiceAccountTokens(account: ServiceAccount, deps: Deps): ServiceAccountTokens {
  const { clock } = deps;
  let current: { readonly token: string; readonly untilMs: number } | undefined;
  let asking: Promise<string | NoToken> | undefined;

  async function ask(): Promise<string | NoToken> {
    const askedAtMs = clock.monotonicMs();
    const granted = await exchange(account, deps);
    if ('outcome' in granted) return granted;
    current = { token: granted.token, untilMs: askedAtMs + granted.lifetimeMs - MARGIN_MS };
    return granted.token;
  }

  return {
    async get() {
      if (current !== undefined && clock.monotonicMs() < current.untilMs) return current.token;
      // Whoever needs one meanwhile waits for the same.
      asking ??= ask().finally(() => {
        asking = undefined;
      });
      return asking;
    },
    forget() {
      current = undefined;
    },
  };
}

interface Grant {
  readonly token: string;
  readonly lifetimeMs: number;
}

async function exchange(account: ServiceAccount, deps: Deps): Promise<Grant | NoToken> {
  const { dispatcher, clock, timeoutMs } = deps;
  const issuedAt = Math.floor(clock.now().getTime() / 1000);
  const assertion = await new SignJWT({ scope: SCOPE })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setIssuer(account.clientEmail)
    .setAudience(account.tokenUri)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + LIFETIME_SECONDS)
    .sign(await importPKCS8(account.privateKey, 'RS256'));
  const body = new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion });
  const answer = await callProvider(
    dispatcher,
    {
      method: 'POST',
      url: new URL(account.tokenUri),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: body.toString(),
      timeoutMs,
    },
    new AbortController().signal,
  );
  return answer.result === 'answered' ? grantOf(answer) : NO_TOKEN;
}

const NO_TOKEN = { outcome: 'failed', reason: 'no access token' } as const;

/** Pure. A refusal is of our key or account (RFC 6749, section 5.2). */
function grantOf({ status, body }: HttpAnswer): Grant | NoToken {
  if (status === 400 || status === 401 || status === 403) {
    return { outcome: 'refused', cause: 'credentials', reason: `token ${status}` };
  }
  if (status !== 200) return NO_TOKEN;
  const { access_token, expires_in } = jsonFields(body);
  const token = textOf(access_token);
  const seconds = typeof expires_in === 'number' && expires_in > 0 ? expires_in : LIFETIME_SECONDS;
  return token === undefined || !TOKEN.test(token) ? NO_TOKEN : { token, lifetimeMs: seconds * 1000 };
}
