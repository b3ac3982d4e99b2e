import { hash } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import { type TokenReview, tokenReviewKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isUnavailable } from '@rollcall/platform/kube/errors.ts';
import { collectionPath } from '@rollcall/platform/kube/resource-client.ts';

const CACHE_MS = 30_000;
const CACHE_ENTRIES = 10_000;

export interface TokenReviewDeps {
  readonly connection: KubeConnection;
  readonly clock: Clock;
  /** Tokens must be meant for this audience; undefined: for the API server. */
  readonly audience: string | undefined;
}

/**
 * Asks the API server whose token it is (authentication.k8s.io/v1 TokenReview). Answers, good and
 * bad, are kept for 30 s under the token's hash: a revoked token works no longer than that, or than
 * the API server cannot be reached. Calls with one token that come at the same time share one
 * question.
 */
export function tokenReviewer({
  connection,
  clock,
  audience,
}: TokenReviewDeps): (token: string) => Promise<string | undefined> {
  const cache = new Map<string, { subject: string | undefined; untilMs: number }>();
  const asking = new Map<string, Promise<string | undefined>>();

  async function review(token: string): Promise<string | undefined> {
    const { status } = await connection.request<TokenReview>({
      method: 'POST',
      path: collectionPath(tokenReviewKind),
      body: {
        apiVersion: tokenReviewKind.apiVersion,
        kind: tokenReviewKind.kind,
        spec: { token, ...(audience === undefined ? {} : { audiences: [audience] }) },
      },
    });
    if (status?.authenticated !== true) return undefined;
    if (audience !== undefined && status.audiences?.includes(audience) !== true) return undefined;
    return status.user?.username;
  }

  async function ask(token: string, key: string): Promise<string | undefined> {
    const askedMs = clock.monotonicMs();
    const known = cache.get(key)?.subject;
    const subject = await review(token).catch((error: unknown) => {
      // Who was known goes on reading while the API server cannot be reached; there is nothing to
      // write to.
      if (known !== undefined && isUnavailable(error)) return known;
      throw error;
    });
    cache.delete(key);
    cache.set(key, { subject, untilMs: askedMs + CACHE_MS });
    for (const oldest of cache.keys()) {
      if (cache.size <= CACHE_ENTRIES) break;
      cache.delete(oldest);
    }
    return subject;
  }

  return (token) => {
    const key = hash('sha256', token, 'base64');
    const cached = cache.get(key);
    if (cached !== undefined && cached.untilMs > clock.monotonicMs()) return Promise.resolve(cached.subject);
    const going = asking.get(key);
    if (going !== undefined) return going;
    const asked = ask(token, key).finally(() => asking.delete(key));
    asking.set(key, asked);
    return asked;
  };
}
