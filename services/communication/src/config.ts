import { type Environment, parseConfig } from '@rollcall/platform/process/config.ts';
import { serviceConfig, serviceSettings } from '@rollcall/platform/service/settings.ts';
import { Type } from 'typebox';

const schema = Type.Object({
  ...serviceSettings(3003),
  ROLLCALL_REDIS_URL: Type.Optional(
    Type.String({ minLength: 1, description: 'redis://:password@host:port; absent: each replica counts by itself' }),
  ),
  ROLLCALL_RETRY_BASE_SECONDS: Type.Number({
    minimum: 0.05,
    maximum: 3600,
    default: 15,
    description: 'Before a message that no provider took is tried again; each pause is twice as long, up to an hour',
  }),
  ROLLCALL_CONTENT_DAYS: Type.Integer({
    minimum: 1,
    maximum: 3650,
    default: 7,
    description: 'For so long what messages say is kept, and a message can be tried again',
  }),
  ROLLCALL_MESSAGE_DAYS: Type.Integer({
    minimum: 31,
    maximum: 3650,
    default: 90,
    description: 'For so long messages are kept, with their recipients and what became of them',
  }),
  ROLLCALL_REDIS_PREFIX: Type.String({ minLength: 1, maxLength: 256, default: 'rollcall' }),
});

/** Settings of the communication process. */
export type CommunicationConfig = ReturnType<typeof communicationConfig>;

/** @throws Error naming every faulty variable. */
export function communicationConfig(environment: Environment) {
  const parsed = parseConfig(schema, environment);
  return {
    ...serviceConfig(parsed),
    /** Undefined: each replica counts by itself. */
    redisUrl: parsed.ROLLCALL_REDIS_URL,
    contentDays: parsed.ROLLCALL_CONTENT_DAYS,
    messageDays: parsed.ROLLCALL_MESSAGE_DAYS,
    retryBaseMs: parsed.ROLLCALL_RETRY_BASE_SECONDS * 1000,
    /** Begins the keys there. */
    redisPrefix: parsed.ROLLCALL_REDIS_PREFIX,
  };
}
