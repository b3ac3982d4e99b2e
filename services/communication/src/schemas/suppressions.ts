import { listQuery } from '@rollcall/platform/http/lists.ts';
import { pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
import { type Static, Type } from 'typebox';
import {
  type StoredSuppression,
  suppressedChannels,
  suppressionReasons,
  suppressionScopes,
} from '../domain/suppressions.ts';
import { owner } from './owner.ts';

const Recipient = Type.String({
  minLength: 1,
  maxLength: 254,
  description: 'Mail address, or number of a mobile phone such as +27821234567',
});
const Channel = Type.Enum([...suppressedChannels]);
const Reason = Type.Enum([...suppressionReasons]);
const Scope = Type.Enum([...suppressionScopes], {
  description: '`all`, or `marketing`: transactional messages are sent all the same',
});

export const SuppressionParams = Type.Object({ recipient: Recipient });
export const SuppressionsQuery = Type.Object(
  {
    ...listQuery,
    ...owner,
    recipient: Type.Optional(Recipient),
    channel: Type.Optional(Channel),
    reason: Type.Optional(Reason),
  },
  strict,
);
export const WriteQuery = Type.Object({ ...owner, channel: Type.Optional(Channel) }, strict);
export const WriteBody = Type.Object({ scope: Type.Optional(Scope) }, strict);
export const RemoveQuery = Type.Object(
  { ...owner, channel: Type.Optional(Channel), reason: Type.Optional(Reason) },
  strict,
);
export const SuppressionRecord = Type.Object({
  recipient: Type.String(),
  channel: Channel,
  scope: Scope,
  reason: Reason,
  messageId: Type.Union([Type.String(), Type.Null()], { description: 'By which it was learned' }),
  createdAt: Type.String({ format: 'date-time' }),
});

export const SuppressionsResponse = Type.Object({
  suppressions: Type.Array(SuppressionRecord),
  ...pageAnswer,
});

export function suppressionRecord(suppression: StoredSuppression): Static<typeof SuppressionRecord> {
  const { recipient, channel, scope, reason, messageId = null, createdAt } = suppression;
  return { recipient, channel, scope, reason, messageId, createdAt: createdAt.toISOString() };
}
