import { type AllowedAddresses, addressRules } from '../outbound/address-rules.ts';
import { createGuardedAgent } from '../outbound/guarded-agent.ts';

const TIMEOUT_MS = 10_000;

interface HttpPost {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What a receiver answers; nobody reads its body. */
export interface PostAnswer {
  readonly status: number;
  /** The header, as it came. */
  readonly retryAfter: string | undefined;
}

/** Rejects where there is no answer within 10 s. */
export type Post = (request: HttpPost) => Promise<PostAnswer>;

/**
 * Posts to the allowed addresses without following redirects, which could lead anywhere, and
 * without reading the answer's body.
 */
export function createPost(addresses: AllowedAddresses): Post {
  const agent = createGuardedAgent({
    mayConnect: addressRules[addresses],
    connectTimeoutMs: TIMEOUT_MS,
    keepAlive: false,
  });
  return async ({ url, headers, body }) => {
    const { origin, pathname, search } = new URL(url);
    const response = await agent.request({
      origin,
      path: pathname + search,
      method: 'POST',
      headers: { ...headers, 'user-agent': 'rollcall' },
      body,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    // Nobody reads it, and so nobody has to know that it broke.
    response.body.on('error', () => undefined);
    response.body.destroy();
    const retryAfter = response.headers['retry-after'];
    return { status: response.statusCode, retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter };
  };
}

/** Why a post got no answer: a code such as ECONNREFUSED or the name of the error. Messages may hold the URL. */
export function failureOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return 'no answer: unknown';
  return `no answer: ${'code' in cause && typeof cause.code === 'string' ? cause.code : cause.name}`;
}
