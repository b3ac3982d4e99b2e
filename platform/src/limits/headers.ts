import type { LimitDecision, NamedLimit } from './rate-limiter.ts';

/**
 * What an answer says of the limit: the headers of contract 3, and those of the IETF
 * (draft-ietf-httpapi-ratelimit-headers-11, structured fields), which give a time from now and so
 * need no clock that both sides agree on. A refusal has `retry-after` too.
 */
export function headersOf({ name, limit }: NamedLimit, decision: LimitDecision): Record<string, string> {
  const { allowed, remaining, resetAtSeconds, retryAfterSeconds } = decision;
  const headers: Record<string, string> = {
    'x-ratelimit-limit': `${limit.requests}`,
    'x-ratelimit-remaining': `${remaining}`,
    'x-ratelimit-reset': `${resetAtSeconds}`,
    'ratelimit-policy': `"${name}";q=${limit.requests};w=${Math.ceil(limit.windowMs / 1000)}`,
    ratelimit: `"${name}";r=${remaining};t=${retryAfterSeconds}`,
  };
  if (!allowed) headers['retry-after'] = `${retryAfterSeconds}`;
  return headers;
}
