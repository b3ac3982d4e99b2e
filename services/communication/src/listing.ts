import type { Identity } from '@rollcall/platform/http/identity.ts';
import { pageOf } from '@rollcall/platform/http/lists.ts';
import { seesAll } from '@rollcall/platform/http/scopes.ts';
import type { Static } from 'typebox';
import type { Whose } from './domain/messages.ts';
import { soughtRecipient } from './domain/recipients.ts';
import type { SendMessagesDeps } from './domain/sending.ts';
import { type MessagesQuery, type MessagesResponse, messageRecord } from './schemas/messages.ts';

/** Messages that a caller sees, newest first, by whichever door. @throws ServiceError INVALID_REQUEST. */
export async function listMessages(
  { store, ways }: Pick<SendMessagesDeps, 'store' | 'ways'>,
  caller: Identity,
  asked: Static<typeof MessagesQuery>,
): Promise<Static<typeof MessagesResponse>> {
  const { status: state, channel, to, tag, template, ...list } = asked;
  const page = pageOf(list);
  const recipient = to === undefined ? undefined : soughtRecipient(to, ways.region);
  const filter = { state, channel, to: recipient, tag, template };
  const { rows, total, nextCursor } = await store.list(whoseOf(caller), filter, page);
  const { limit, offset } = page;
  return { messages: rows.map(messageRecord), total, limit, offset, nextCursor };
}

/** Whose messages a caller sees. */
export function whoseOf(caller: Identity): Whose {
  return { subject: caller.subject, isAll: seesAll(caller, 'messages') };
}
