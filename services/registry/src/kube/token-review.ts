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
 * Asks the API server whose token it is (authentication.k8s.io/v1 TokenReview). Answers, good and bad, are kept for 30 s under
 * the token's hash: a revoked token works no longer than that, or than the API server is away.
 */
export function tokenReviewer({
  connection,
  clock,
  audience,
}: TokenReviewDeps): (token: string) => Promise<string | undefined> {
  const cache = new Map<string, { subject: string | undefined; untilMs: number }>();

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

  return async (token) => {
    const key = hash('sha256', token, 'base64');
    const nowMs = clock.monotonicMs();
    const cached = cache.get(key);
    if (cached !== undefined && cached.untilMs > nowMs) return cached.subject;
    const subject = await review(token).catch((error: unknown) => {
      // Who was known goes on reading while the API server is away; there is nothing to write to.
      if (cached?.subject !== undefined && isUnavailable(error)) return cached.subject;
      throw error;
    });
    cache.delete(key);
    cache.set(key, { subject, untilMs: nowMs + CACHE_MS });
    for (const oldest of cache.keys()) {
      if (cache.size <= CACHE_ENTRIES) break;
      cache.delete(oldest);
    }
    return subject;
  };
}
