import type { FastifyRequest } from 'fastify';
import { decodeJwt, errors, type JWTPayload, jwtVerify } from 'jose';
import type { Clock } from '../clock.ts';
import type { KeySet } from './key-sets.ts';

/**
 * The headers by which a service knows who is calling, and whom. Only `token`
 * proves anything.
 */
export const identityHeaders = {
  token: 'x-rollcall-identity',
  /** Percent-encoded. */
  subject: 'x-rollcall-subject',
  tier: 'x-rollcall-tier',
  /** Separated by spaces. */
  scopes: 'x-rollcall-scopes',
  /**
   * The name by which a request was let in, over REST, percent-encoded: also that of a caller who
   * had to show nothing.
   */
  service: 'x-rollcall-service',
} as const;

/** Every header that comes from outside with this prefix is dropped by the gateway. */
export const IDENTITY_HEADER_PREFIX = 'x-rollcall-';

/** The `typ` of an identity: an access token does not pass for one, nor the other way round. */
export const IDENTITY_TOKEN_TYPE = 'rollcall-identity+jwt';

const ALGORITHM = 'ES256';
/** As long as the gateway shows one identity. A key that it has withdrawn counts for so much longer. */
const REMEMBERED_MS = 30_000;
const MOST_REMEMBERED = 1000;
/** Characters; longer ones are checked each time. */
const LONGEST_REMEMBERED = 4096;
const TOLERANCE_SECONDS = 5;

/** The `aud` of identities for a service. */
export function identityAudience(service: string): string {
  return `rollcall:service:${service}`;
}

/**
 * The `typ` of an access token (RFC 9068, section 2.1): nothing else that is signed with the same
 * keys passes for one.
 */
export const ACCESS_TOKEN_TYPE = 'at+jwt';

/** Who is calling, as the gateway has proven it. */
export interface Identity {
  readonly subject: string;
  readonly tier: string;
  readonly scopes: ReadonlySet<string>;
  /** When the proof ends, in milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

export interface GatewayKeysOptions {
  /** `iss` of the gateway. */
  readonly issuer: string;
  readonly keys: KeySet;
  readonly clock: Clock;
}

/**
 * Verifies a token that the gateway has signed.
 *
 * @returns undefined when it does not hold.
 * @throws when the gateway's keys cannot be had.
 */
type Verify = (token: string) => Promise<Identity | undefined>;

interface ExpectedToken {
  readonly typ: string;
  readonly audience: string;
}

function createVerify({ issuer, keys, clock }: GatewayKeysOptions, { typ, audience }: ExpectedToken): Verify {
  const verified = createMemory(clock);
  return async (token) => {
    const known = verified.find(token);
    if (known !== undefined) return known;
    try {
      const { payload } = await jwtVerify(token, keys, {
        algorithms: [ALGORITHM],
        typ,
        issuer,
        audience,
        clockTolerance: TOLERANCE_SECONDS,
        currentDate: clock.now(),
        requiredClaims: ['sub', 'exp'],
      });
      return verified.keep(token, identityOf(payload));
    } catch (err) {
      if (err instanceof errors.JOSEError) return undefined;
      throw err;
    }
  };
}

interface Remembered {
  readonly identity: Identity;
  readonly untilMs: number;
}

/** Whom tokens name: checking a signature costs as much as the rest of a small request. */
function createMemory(clock: Clock) {
  const known = new Map<string, Remembered>();
  return {
    find(token: string): Identity | undefined {
      const found = known.get(token);
      if (found === undefined || clock.now().getTime() < found.untilMs) return found?.identity;
      known.delete(token);
      return undefined;
    },
    /** @param exp seconds since 1970. */
    keep(token: string, identity: Identity): Identity {
      if (token.length > LONGEST_REMEMBERED) return identity;
      const untilMs = Math.min(identity.expiresAtMs, clock.now().getTime() + REMEMBERED_MS);
      known.set(token, { identity, untilMs });
      const [oldest] = known.keys();
      if (known.size > MOST_REMEMBERED && oldest !== undefined) known.delete(oldest);
      return identity;
    },
  };
}

export interface IdentityOptions extends GatewayKeysOptions {
  /** The registered name of this service. */
  readonly service: string;
}

/** Reads who is calling from a request that came by the gateway. */
export interface IdentityReader {
  /**
   * @returns undefined when the request carries no identity, or none that holds.
   * @throws when the gateway's keys cannot be had.
   */
  read(request: Pick<FastifyRequest, 'headers'>): Promise<Identity | undefined>;
}

/** Verifies identities with the gateway's published keys. */
export function createIdentityReader(options: IdentityOptions): IdentityReader {
  const verify = createVerify(options, { typ: IDENTITY_TOKEN_TYPE, audience: identityAudience(options.service) });
  return {
    async read({ headers }) {
      const token = headers[identityHeaders.token];
      return typeof token === 'string' ? verify(token) : undefined;
    },
  };
}

/**
 * Reads an access token of the gateway's. Whether its client has been deleted since only the gateway
 * knows: it counts until it ends.
 *
 * @param audience of the gateway's access tokens.
 * @returns as {@link IdentityReader.read}.
 */
export function createAccessTokenReader(
  options: GatewayKeysOptions,
  audience: string,
): (token: string) => Promise<Identity | undefined> {
  return createVerify(options, { typ: ACCESS_TOKEN_TYPE, audience });
}

/**
 * Whether an identity is one that the gateway has signed for this service. Nothing is verified: a
 * service knows by which of its names a request was let in, as rules of the gateway hold for one of
 * them alone. Whoever comes by the gateway can neither change the identity nor leave it out, but
 * for routes that are open to all: `identityHeaders.service` has the name there, too.
 */
export function isIdentityFor(service: string, token: string): boolean {
  return claimsOf(token).aud === identityAudience(service);
}

/**
 * Whom an identity names. Nothing is verified: good for counting, where no more is known, and for
 * nothing else.
 */
export function unverifiedSubject(token: string): string | undefined {
  return claimsOf(token).sub;
}

/** What an identity may do. Nothing is verified: good for refusing, and for nothing else. */
export function unverifiedScopes(token: string): ReadonlySet<string> {
  return scopesOf(claimsOf(token));
}

/** None where it is no token. */
function claimsOf(token: string): JWTPayload {
  try {
    return decodeJwt(token);
  } catch {
    return {};
  }
}

function scopesOf({ scope }: JWTPayload): ReadonlySet<string> {
  return new Set(typeof scope === 'string' ? scope.split(' ').filter((each) => each !== '') : []);
}

function identityOf({ sub = '', exp = 0, ...claims }: JWTPayload): Identity {
  const tier = claims['tier'];
  return {
    subject: sub,
    tier: typeof tier === 'string' ? tier : '',
    scopes: scopesOf(claims),
    expiresAtMs: exp * 1000,
  };
}
