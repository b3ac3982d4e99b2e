import { headersOf } from '@rollcall/platform/limits/headers.ts';
import { limitKeyOf } from '@rollcall/platform/limits/limiter-store.ts';
import type { Limit, RateLimiter } from '@rollcall/platform/limits/rate-limiter.ts';
import type { Channel } from '../domain/messages.ts';
import { CommunicationError } from '../errors.ts';

const aMinute = (requests: number): Limit => ({ requests, windowMs: 60_000 });

/** Of each subject (contract 2, "Limits"), whatever the door. */
const LIMITS: Readonly<Record<Channel, Limit>> = { email: aMinute(100), sms: aMinute(50), push: aMinute(200) };

/** Counts a call that sends. @returns the headers of its answer. @throws ServiceError RATE_LIMITED. */
export type CountSend = (channel: Channel, subject: string) => Promise<Readonly<Record<string, string>>>;

export function createSendLimits(limiter: RateLimiter): CountSend {
  return async (channel, subject) => {
    const limit = LIMITS[channel];
    const decision = await limiter.take(`communication:${channel}:${limitKeyOf(subject)}`, limit);
    const headers = headersOf({ name: channel, limit }, decision);
    if (decision.allowed) return headers;
    const details = { limit: limit.requests, retryAfterSeconds: decision.retryAfterSeconds };
    throw new CommunicationError('RATE_LIMITED', { headers, details });
  };
}
