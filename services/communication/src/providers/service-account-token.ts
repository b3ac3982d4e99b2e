import type { Clock } from '@rollcall/platform/clock.ts';
import { importPKCS8, SignJWT } from 'jose';
import type { Dispatcher } from 'undici';
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

/** Access tokens of a service account (RFC 7523), one at a time. */
export interface ServiceAccountTokens {
  /** @returns undefined where none is to be had now. */
  get(signal: AbortSignal): Promise<string | undefined>;
  /** The token was not accepted. */
  forget(): void;
}

export function createServiceAccountTokens(account: ServiceAccount, deps: Deps): ServiceAccountTokens {
  const { clock } = deps;
  let current: { readonly token: string; readonly untilMs: number } | undefined;
  return {
    async get(signal) {
      if (current !== undefined && clock.monotonicMs() < current.untilMs) return current.token;
      const askedAtMs = clock.monotonicMs();
      const granted = await exchange(account, deps, signal);
      if (granted === undefined) return undefined;
      current = { token: granted.token, untilMs: askedAtMs + granted.lifetimeMs - MARGIN_MS };
      return granted.token;
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

async function exchange(account: ServiceAccount, deps: Deps, signal: AbortSignal): Promise<Grant | undefined> {
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
    signal,
  );
  if (answer.result !== 'answered' || answer.status !== 200) return undefined;
  const { access_token, expires_in } = jsonFields(answer.body);
  const token = textOf(access_token);
  const seconds = typeof expires_in === 'number' && expires_in > 0 ? expires_in : LIFETIME_SECONDS;
  return token === undefined ? undefined : { token, lifetimeMs: seconds * 1000 };
}
