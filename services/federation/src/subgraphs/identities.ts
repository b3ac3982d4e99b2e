import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '@rollcall/platform/clock.ts';
import { bearerToken } from '@rollcall/platform/http/bearer.ts';
import { type Identity, identityHeaders } from '@rollcall/platform/http/identity.ts';
import { NoAnswerError } from '@rollcall/platform/outbound/exchange.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { AskForToken } from '@rollcall/platform/service/gateway-client.ts';
import { GraphQLError } from 'graphql/index.js';
import { LRUCache } from 'lru-cache';
import { Type } from 'typebox';
import { Value } from 'typebox/value';

/** Who calls, with what shows it. */
export interface ShownCaller extends Identity {
  readonly token: string;
  readonly kind: 'jwt' | 'access_token';
}

/** Tells subgraphs who calls. */
export interface SubgraphIdentities {
  /**
   * Header fields for one service alone.
   *
   * @param service its registered name.
   * @throws GraphQLError where the gateway gives no identity.
   */
  headersFor(caller: ShownCaller, service: string): Promise<Readonly<Record<string, string>>>;
}

export interface SubgraphIdentitiesDeps {
  readonly askForToken: AskForToken;
  readonly clock: Clock;
  readonly log: Logger;
}

const TYPES = 'urn:ietf:params:oauth:token-type:';
const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
/** What a service has seen of a caller counts for so long, as at the gateway. */
const REUSE_MS = 30_000;
/** Of all identities that are kept: those of 50,000 callers at a service. */
const MOST_CHARACTERS = 32 * 1024 * 1024;
/** Of one, until it has come. */
const LARGEST_IDENTITY = 8192;
const Exchanged = Type.Object({ access_token: Type.String(), expires_in: Type.Number() });

interface Kept {
  readonly identity: Promise<string>;
  /** Of the monotonic clock. */
  readonly untilMs: number;
}

/**
 * Pure. What a request shows of a caller that is known: an identity of the gateway, else an access
 * token.
 */
export function shownCaller(headers: IncomingHttpHeaders, caller: Identity | undefined): ShownCaller | undefined {
  const { authorization, [identityHeaders.token]: identity } = headers;
  if (caller === undefined) return undefined;
  if (typeof identity === 'string') return { ...caller, token: identity, kind: 'jwt' };
  const token = bearerToken(authorization);
  return token === undefined ? undefined : { ...caller, token, kind: 'access_token' };
}

/**
 * Exchanges at the gateway what callers show for an identity at each service (docs/decisions/0477).
 * One exchange serves all requests with a token for 30 s, and those that come while it is made.
 */
export function createSubgraphIdentities({ askForToken, clock, log }: SubgraphIdentitiesDeps): SubgraphIdentities {
  const kept = new LRUCache<string, Kept>({ maxSize: MOST_CHARACTERS });

  async function exchange({ token, kind }: ShownCaller, audience: string) {
    const form = { grant_type: GRANT, subject_token: token, subject_token_type: `${TYPES}${kind}`, audience };
    try {
      const { status, body } = await askForToken(form);
      const answer: unknown = JSON.parse(body);
      if (status === 200 && Value.Check(Exchanged, answer)) return answer;
      log.warn({ service: audience, status, error: errorOf(answer) }, 'the gateway gave no identity for a service');
    } catch (error) {
      if (!(error instanceof NoAnswerError || error instanceof SyntaxError)) throw error;
      log.warn({ service: audience, message: error.message }, 'the gateway gave no identity for a service');
    }
    throw new GraphQLError('The gateway could not tell the service who calls; try again', {
      extensions: { code: 'SUBGRAPH_UNAVAILABLE' },
    });
  }

  function identityFor(caller: ShownCaller, service: string): Promise<string> {
    // Tokens are not kept.
    const key = `${service} ${hash('sha256', `${caller.kind} ${caller.token}`, 'base64')}`;
    const nowMs = clock.monotonicMs();
    const known = kept.get(key);
    if (known !== undefined && nowMs < known.untilMs) return known.identity;
    const entry: Kept = { identity: exchangeOnce(), untilMs: nowMs + REUSE_MS };
    kept.set(key, entry, { size: key.length + LARGEST_IDENTITY });
    return entry.identity;

    async function exchangeOnce(): Promise<string> {
      try {
        const { access_token: token, expires_in: seconds } = await exchange(caller, service);
        const untilMs = Math.min(entry.untilMs, nowMs + seconds * 1000);
        if (kept.peek(key) === entry) kept.set(key, { ...entry, untilMs }, { size: key.length + token.length });
        return token;
      } catch (error) {
        if (kept.peek(key) === entry) kept.delete(key);
        throw error;
      }
    }
  }

  return {
    async headersFor(caller, service) {
      return {
        [identityHeaders.token]: await identityFor(caller, service),
        [identityHeaders.subject]: encodeURIComponent(caller.subject),
        [identityHeaders.tier]: caller.tier,
        [identityHeaders.scopes]: [...caller.scopes].join(' '),
      };
    },
  };
}

/** In the words of RFC 6749; never what else the answer says. */
function errorOf(answer: unknown): string | undefined {
  const error: unknown = typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'error') : undefined;
  return typeof error === 'string' && /^[a-z_]{1,64}$/.test(error) ? error : undefined;
}
