import { headersOf } from '@rollcall/platform/limits/headers.ts';
import { limitKeyOf } from '@rollcall/platform/limits/limiter-store.ts';
import type { Limit, RateLimiter } from '@rollcall/platform/limits/rate-limiter.ts';
import type { Channel } from '../domain/messages.ts';
import { CommunicationError } from '../errors.ts';

const aMinute = (requests: number): Limit => ({ requests, windowMs: 60_000 });

/** What takes more than a look into the database: sending, and compiling or rendering templates of strangers. */
type LimitedCall = Channel | 'publish' | 'preview';

/** Of each subject (contract 2, "Limits"), whatever the door. */
const LIMITS: Readonly<Record<LimitedCall, Limit>> = {
  email: aMinute(100),
  sms: aMinute(50),
  push: aMinute(200),
  publish: aMinute(120),
  preview: aMinute(120),
};

/** Counts a call. @returns the headers of its answer. @throws ServiceError RATE_LIMITED. */
export type CountCall = (call: LimitedCall, subject: string) => Promise<Readonly<Record<string, string>>>;

export function createCallLimits(limiter: RateLimiter): CountCall {
  return async (call, subject) => {
    const limit = LIMITS[call];
    const decision = await limiter.take(`communication:${call}:${limitKeyOf(subject)}`, limit);
    const headers = headersOf({ name: call, limit }, decision);
    if (decision.allowed) return headers;
    const details = { limit: limit.requests, retryAfterSeconds: decision.retryAfterSeconds };
    throw new CommunicationError('RATE_LIMITED', { headers, details });
  };
}
