import { commonError } from '@rollcall/platform/common-errors.ts';
import { CommunicationError } from '../errors.ts';
import {
  type AcceptanceDeps,
  acceptEmail,
  acceptPush,
  acceptSms,
  type EmailRequest,
  EXPIRES_AFTER_MS,
  expiryOf,
  type PushRequest,
  type SmsRequest,
  sendAtOf,
} from './acceptance.ts';
import type { MessageStore } from './message-store.ts';
import type { Attempt, Channel, Message, Whose } from './messages.ts';
import type { MessageState } from './states.ts';

/** What is asked for, by channel. */
export type ChannelRequest =
  | { readonly channel: 'email'; readonly request: EmailRequest }
  | { readonly channel: 'sms'; readonly request: SmsRequest }
  | { readonly channel: 'push'; readonly request: PushRequest };

export interface SendMessagesDeps extends Omit<AcceptanceDeps, 'insert'> {
  readonly store: MessageStore;
  /** A message of the channel may be due now. */
  readonly wake: (channel: Channel) => void;
}

/** Who sends. */
export interface Sender {
  readonly subject: string;
  /** Of what is made; a message that is there by it is the effect. */
  readonly id: string;
  /** Surely there is none by it. */
  readonly isNew: boolean;
  /** What paths of faults begin with. */
  readonly root: string;
}

/** Accepts a message. @throws ServiceError of acceptance. */
export async function sendMessage(deps: SendMessagesDeps, sender: Sender, asked: ChannelRequest): Promise<Message> {
  const { store, wake } = deps;
  const whose = { subject: sender.subject, isAll: false };
  const present = sender.isNew ? undefined : await store.find(sender.id, whose);
  if (present !== undefined) return present;
  const accepted = await accept(deps, sender, asked);
  wake(asked.channel);
  return accepted ?? found(await store.find(sender.id, whose));
}

function accept(deps: SendMessagesDeps, sender: Sender, asked: ChannelRequest): Promise<Message | undefined> {
  const { store } = deps;
  const acceptance = { ...deps, insert: (message: Parameters<typeof store.insert>[0]) => store.insert(message) };
  if (asked.channel === 'email') return acceptEmail(acceptance, sender, asked.request);
  return asked.channel === 'sms'
    ? acceptSms(acceptance, sender, asked.request)
    : acceptPush(acceptance, sender, asked.request);
}

/** @throws ServiceError NOT_FOUND where there is none, or it is another's. */
export async function readMessage(
  { store }: Pick<SendMessagesDeps, 'store'>,
  id: string,
  whose: Whose,
): Promise<Message> {
  return found(await store.find(id, whose));
}

/** What is to become of a message. */
export interface MessageCommand {
  readonly id: string;
  readonly whose: Whose;
  /** The same where the call is repeated. */
  readonly callId: string;
}

/** Before it leaves. Again: nothing. @throws ServiceError NOT_FOUND, CONFLICT. */
export async function cancelMessage(
  deps: Pick<SendMessagesDeps, 'store'>,
  { id, whose }: MessageCommand,
): Promise<Message> {
  const { state } = await readMessage(deps, id, whose);
  if (state !== 'cancelled' && !(await deps.store.cancel(id))) throw await conflict(deps, id, whose);
  return readMessage(deps, id, whose);
}

/**
 * Puts a message off, or sends it sooner, as long as it waits for its time. Again: the same.
 *
 * @param text a date-time, at most 30 days ahead. @throws ServiceError NOT_FOUND, CONFLICT, INVALID_REQUEST.
 */
export async function rescheduleMessage(
  deps: Pick<SendMessagesDeps, 'store' | 'wake' | 'clock'>,
  { id, whose }: Pick<MessageCommand, 'id' | 'whose'>,
  text: string,
): Promise<Message> {
  const now = deps.clock.now();
  const sendAt = sendAtOf(text, { now, root: 'body' });
  const { channel } = await readMessage(deps, id, whose);
  if (!(await deps.store.reschedule(id, { sendAt, expiresAt: expiryOf(sendAt, now) })))
    throw await conflict(deps, id, whose);
  deps.wake(channel);
  return readMessage(deps, id, whose);
}

/**
 * Tries a message again that was given up, or of which nobody knows whether it was sent: it may then
 * arrive twice.
 *
 * @throws ServiceError NOT_FOUND, CONFLICT.
 */
export async function retryMessage(
  deps: Pick<SendMessagesDeps, 'store' | 'wake'>,
  { id, whose, callId }: MessageCommand,
): Promise<Message> {
  const { channel } = await readMessage(deps, id, whose);
  if (!(await deps.store.restart(id, { callId, expiresAfterMs: EXPIRES_AFTER_MS })))
    throw await conflict(deps, id, whose);
  deps.wake(channel);
  return readMessage(deps, id, whose);
}

async function conflict(deps: Pick<SendMessagesDeps, 'store'>, id: string, whose: Whose): Promise<CommunicationError> {
  const { state: status } = await readMessage(deps, id, whose);
  return new CommunicationError('CONFLICT', { details: { status } });
}

function found(message: Message | undefined): Message {
  if (message === undefined) throw commonError('NOT_FOUND');
  return message;
}

const UNDER_WAY: ReadonlySet<MessageState> = new Set(['queued', 'sending']);

/** Whether the first attempt is still to be made, or is not over. A later one may be hours away. */
export function awaitsFirstAttempt({ state }: Message, [first]: readonly Attempt[]): boolean {
  return UNDER_WAY.has(state) && (first === undefined || first.state === 'begun');
}
