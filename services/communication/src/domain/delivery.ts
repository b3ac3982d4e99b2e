import type { Clock } from '@rollcall/platform/clock.ts';
import { backoffMs } from '@rollcall/platform/retry.ts';
import { withinTime } from '@rollcall/platform/within-time.ts';
import {
  chooseProvider,
  type NextStep,
  type RetryPolicy,
  type RouteEntry,
  repeatDelay,
  stepAfter,
} from './dispatch.ts';
import type { AttemptEnd, BegunAttempt, DueMessage, MessageChange, SendingStore } from './message-store.ts';
import { type Channel, type Envelope, type MessageContent, outgoingOf, type Suppressions } from './messages.ts';
import { causesOfMessage, type Mailbox, type OutgoingMessage, type SendOutcome } from './ports.ts';
import { reasonOfCopy, reasonOfRefused, withReason } from './reasons.ts';

/** A provider, as sending needs it. */
export interface Way {
  readonly name: string;
  readonly idempotentForMs: number | undefined;
  /** What a call takes at most. */
  readonly callMs: number;
  availableInMs(): number;
  /**
   * Waits for its turn, where that is soon.
   *
   * @returns 0: it is called now, by who calls `send`, or `abandon`. Else in how many milliseconds to ask again.
   */
  acquire(signal: AbortSignal): Promise<number>;
  /** It is not called after all. */
  abandon(): Promise<void>;
  send(message: OutgoingMessage, signal: AbortSignal): Promise<SendOutcome>;
}

export interface DeliveryDeps {
  readonly store: SendingStore;
  readonly routeOf: (channel: Channel, envelope: Envelope) => readonly RouteEntry[];
  readonly find: (provider: string) => Way | undefined;
  readonly suppressions: Suppressions;
  /** Of mail that its recipient may opt out of; undefined: there is no such page. */
  readonly unsubscribeUrl: (
    message: Pick<DueMessage, 'id' | 'subject' | 'category'>,
    recipient: string,
  ) => string | undefined;
  /** Repeats what fails while the database is away: an outcome that is known must not be lost. */
  readonly persist: <T>(work: () => Promise<T>) => Promise<T>;
  readonly onAttempt: (attempt: { channel: Channel; provider: string; outcome: SendOutcome; tookMs: number }) => void;
  readonly policy: RetryPolicy;
  readonly clock: Clock;
  /** Source in [0, 1). */
  readonly random: () => number;
}

/** Between the end of a call and the end of its lease. */
const LEASE_MARGIN_MS = 15_000;
/** Until it is looked again whether there is a provider. */
const NO_WAY_PAUSE_MS = 60_000;
/** Where a message could not be prepared. */
const UNPREPARED_PAUSE_MS = 1000;
const SHORTEST_WAIT_MS = 50;
/** The settings may be others by then. */
const LONGEST_WAIT_MS = 3_600_000;

/** Does what is due of one message. */
export async function deliver(deps: DeliveryDeps, due: DueMessage, signal: AbortSignal): Promise<void> {
  const { id, state } = due;
  // Whoever cancels a message, or reports of it, may be quicker; then nothing is due of it.
  if (state === 'scheduled' && !(await deps.store.change(id, { event: 'released', dueInMs: 0 }))) return;
  if (state === 'scheduled' || state === 'queued') await dispatch(deps, due, signal);
  else if (state === 'sending') await lose(deps, due);
  else if (state === 'unknown') await settle(deps, due, signal);
}

async function dispatch(deps: DeliveryDeps, due: DueMessage, signal: AbortSignal): Promise<void> {
  const { store, suppressions, find, clock } = deps;
  const { id, subject, channel, category, envelope } = due;
  if (clock.now() >= due.expiresAt) {
    await store.change(id, { event: 'given-up', reason: 'expired' });
    return;
  }
  const reason = await suppressions.reasonFor({ subject, channel, category, recipient: envelope.to });
  if (reason !== undefined) {
    await store.change(id, { event: 'suppressed', reason });
    return;
  }
  const waitMs = (ms: number) => {
    const dueInMs = Math.min(Math.max(SHORTEST_WAIT_MS, ms), LONGEST_WAIT_MS);
    return store.putOff(id, { state: 'queued', dueInMs });
  };
  const choice = chooseProvider(deps.routeOf(channel, envelope), {
    availableInMs: (provider) => find(provider)?.availableInMs() ?? NO_WAY_PAUSE_MS,
    tried: new Set(due.tried),
    random: deps.random,
  });
  if (choice === 'none') return waitMs(NO_WAY_PAUSE_MS);
  if (choice === 'none-left') return pause(deps, due);
  const way = find(choice.provider);
  if (way === undefined) return waitMs(NO_WAY_PAUSE_MS);
  const inMs = await way.acquire(signal);
  if (inMs > 0) return waitMs(inMs);
  await attempt(deps, { due, way }, signal);
}

/** The next provider that was to try is no longer there: it goes on as after the last one. */
function pause({ store, policy, random }: DeliveryDeps, { id, pauses }: DueMessage): Promise<void> {
  const dueInMs = backoffMs(pauses, { ...policy, random });
  return store.putOff(id, { state: 'queued', dueInMs, tried: [], pauses: pauses + 1 });
}

interface Attempting {
  readonly due: DueMessage;
  readonly way: Way;
}

async function attempt(deps: DeliveryDeps, { due: taken, way }: Attempting, signal: AbortSignal): Promise<void> {
  const { store, persist } = deps;
  const begun = await begin(deps, { due: taken, way });
  if (begun === undefined) return way.abandon();
  const due = { ...taken, provider: way.name };
  const message = await prepared(deps, { due, way, number: begun.number }, () => outgoing(deps, due, begun));
  if (message === undefined) {
    await way.abandon();
    const end = { number: begun.number, event: 'failed', reason: 'content-dropped' } as const;
    await persist(() => store.finish(due, end, { event: 'given-up', reason: end.reason }));
    return;
  }
  const outcome = await call(deps, { way, message }, signal);
  await conclude(deps, { due, way, number: begun.number }, outcome);
}

/** Where it cannot be prepared, surely nothing has left: it is queued again. */
async function prepared<T>(
  { store, persist }: DeliveryDeps,
  { due, way, number }: Concluding,
  prepare: () => Promise<T>,
): Promise<T> {
  try {
    return await prepare();
  } catch (error) {
    await way.abandon();
    const end = { number, event: 'failed', reason: 'not-prepared' } as const;
    await persist(() => store.finish(due, end, { event: 'postponed', dueInMs: UNPREPARED_PAUSE_MS }));
    throw error;
  }
}

async function begin({ store }: DeliveryDeps, { due, way }: Attempting): Promise<BegunAttempt | undefined> {
  try {
    return await store.begin(due, way.name, way.callMs + LEASE_MARGIN_MS);
  } catch (error) {
    await way.abandon();
    throw error;
  }
}

interface Calling {
  readonly way: Way;
  readonly message: OutgoingMessage;
}

/** A provider that is told to stop, or is too slow, says what it knows. */
async function call(deps: DeliveryDeps, { way, message }: Calling, signal: AbortSignal): Promise<SendOutcome> {
  const { clock, onAttempt } = deps;
  const startedMs = clock.monotonicMs();
  const outcome = await withinTime(way.callMs, signal, (limit) => way.send(message, limit));
  const tookMs = clock.monotonicMs() - startedMs;
  onAttempt({ channel: message.channel, provider: way.name, outcome, tookMs });
  return outcome;
}

/** What is sent. Recipients of copies who want none are left out. */
async function outgoing(
  deps: DeliveryDeps,
  due: DueMessage,
  begun: BegunAttempt,
): Promise<OutgoingMessage | undefined> {
  const { content, deduplicationId } = begun;
  if (content === undefined) return undefined;
  const message = outgoingOf(await wanted(deps, due, content), { id: due.id, deduplicationId });
  if (message.channel !== 'email' || due.category !== 'marketing') return message;
  const unsubscribeUrl = deps.unsubscribeUrl(due, due.envelope.to);
  return unsubscribeUrl === undefined ? message : { ...message, unsubscribeUrl };
}

async function wanted(deps: DeliveryDeps, due: DueMessage, content: MessageContent): Promise<MessageContent> {
  if (content.channel !== 'email' || content.cc.length + content.bcc.length === 0) return content;
  const { subject, channel, category } = due;
  const copies = await Promise.all(
    [...content.cc, ...content.bcc].map(async ({ address }) => ({
      address,
      reason: await deps.suppressions.reasonFor({ subject, channel, category, recipient: address }),
    })),
  );
  const leftOut = copies.flatMap(({ address, reason }) => (reason === undefined ? [] : [{ address, reason }]));
  if (leftOut.length > 0) await deps.store.leaveOut(due.id, leftOut);
  const without = new Set([...leftOut.map(({ address }) => address), ...(due.envelope.copied ?? [])]);
  const isWanted = ({ address }: Mailbox) => !without.has(address);
  return { ...content, cc: content.cc.filter(isWanted), bcc: content.bcc.filter(isWanted) };
}

interface Concluding extends Attempting {
  readonly number: number;
}

async function conclude(deps: DeliveryDeps, { due, way, number }: Concluding, said: SendOutcome): Promise<void> {
  const outcome = withReason(said);
  const { store, persist, policy, random, clock } = deps;
  const tried = new Set([...due.tried, way.name]);
  const step = stepAfter({
    outcome,
    hasOther: deps.routeOf(due.channel, due.envelope).some(({ provider }) => !tried.has(provider)),
    pauses: due.pauses,
    now: clock.now(),
    expiresAt: due.expiresAt,
    policy,
    random,
  });
  const change =
    step.event === 'lost'
      ? { ...changeOf(step), dueInMs: repeatDelayFor(deps, way, { begunAt: clock.now(), repeats: 0 }) }
      : { ...changeOf(step), ...(step.event === 'postponed' && afterPause(due, step, [...tried])) };
  const bounce = bounceOf(due, outcome);
  // In this order, nothing is lost where the replica is killed between them: both may be done twice.
  await persist(() => suppress(deps, due, outcome));
  await persist(() => leaveOutRefused(deps, due, outcome));
  if (outcome.outcome === 'failed' && outcome.copied !== undefined) {
    const { copied } = outcome;
    await persist(() => store.addCopied(due.id, copied));
  }
  await persist(() => store.finish(due, endOf(number, outcome), bounce ?? change));
}

/** Of a mail that was taken for its copies alone; undefined: of any other. */
function bounceOf({ envelope }: DueMessage, outcome: SendOutcome): MessageChange | undefined {
  if (outcome.outcome !== 'accepted') return undefined;
  const refused = outcome.refusedRecipients?.find(({ address }) => address === envelope.to);
  return refused && { event: 'receipt-bounced', reason: reasonOfRefused(refused) };
}

function changeOf({ event, delayMs, reason }: NextStep): MessageChange {
  return { event, dueInMs: delayMs, reason };
}

/** At another provider it goes on at once; else it waits, and then all may be tried again. */
function afterPause(
  { pauses }: DueMessage,
  { delayMs = 0 }: NextStep,
  tried: readonly string[],
): Pick<MessageChange, 'tried' | 'pauses'> {
  return delayMs > 0 ? { tried: [], pauses: pauses + 1 } : { tried };
}

function endOf(number: number, outcome: SendOutcome): AttemptEnd {
  if (outcome.outcome === 'accepted') return { number, event: 'accepted', providerId: outcome.providerId };
  return { number, event: outcome.outcome, reason: outcome.reason };
}

async function suppress({ suppressions }: DeliveryDeps, due: DueMessage, outcome: SendOutcome): Promise<void> {
  const { id: messageId, subject, channel, envelope } = due;
  if (outcome.outcome === 'refused' && outcome.suppress !== undefined) {
    await suppressions.suppress({ ...outcome.suppress, subject, channel, recipient: envelope.to, messageId });
  }
  if (outcome.outcome !== 'accepted') return;
  for (const { address: recipient, suppress: why } of outcome.refusedRecipients ?? []) {
    if (why !== undefined) await suppressions.suppress({ ...why, subject, channel, recipient, messageId });
  }
}

/** The provider took the message, and not for all who were to get a copy. */
async function leaveOutRefused({ store }: DeliveryDeps, { id, envelope }: DueMessage, outcome: SendOutcome) {
  if (outcome.outcome !== 'accepted') return;
  const copies = new Set([...(envelope.cc ?? []), ...(envelope.bcc ?? [])]);
  const refused = (outcome.refusedRecipients ?? []).filter(({ address }) => copies.has(address));
  if (refused.length === 0) return;
  await store.leaveOut(
    id,
    refused.map((each) => ({ address: each.address, reason: reasonOfCopy(each) })),
  );
}

/** Whoever made the call is gone, and nobody knows what became of it. */
async function lose(deps: DeliveryDeps, due: DueMessage): Promise<void> {
  const way = due.provider === undefined ? undefined : deps.find(due.provider);
  const change = { event: 'lost', reason: 'interrupted', dueInMs: way && repeatDelayFor(deps, way, due) } as const;
  await deps.store.finish(due, { number: due.attempts, event: 'unknown', reason: 'interrupted' }, change);
}

type Unsettled = Pick<DueMessage, 'begunAt' | 'repeats'>;

function repeatDelayFor(
  { clock, policy, random }: DeliveryDeps,
  { idempotentForMs }: Way,
  { begunAt, repeats: pauses }: Unsettled,
): number | undefined {
  const now = clock.now();
  const ageMs = now.getTime() - (begunAt ?? now).getTime();
  return repeatDelay({ idempotentForMs, ageMs, pauses, policy, random });
}

/** Makes the call again where the provider knows that it is the same. */
async function settle(deps: DeliveryDeps, due: DueMessage, signal: AbortSignal): Promise<void> {
  const { store } = deps;
  const way = due.provider === undefined ? undefined : deps.find(due.provider);
  const isRepeated = way !== undefined && repeatDelayFor(deps, way, due) !== undefined;
  const stored = isRepeated ? await store.read(due.id) : undefined;
  const message = stored && (await outgoing(deps, due, stored));
  if (way === undefined || stored === undefined || message === undefined) {
    return store.putOff(due.id, { state: 'unknown', dueInMs: undefined });
  }
  await store.putOff(due.id, { state: 'unknown', dueInMs: way.callMs + LEASE_MARGIN_MS });
  const outcome = saidByRepeat(await call(deps, { way, message }, signal));
  if (outcome.outcome !== 'unknown') return conclude(deps, { due, way, number: stored.number }, outcome);
  const repeats = due.repeats + 1;
  await store.putOff(due.id, { state: 'unknown', repeats, dueInMs: repeatDelayFor(deps, way, { ...due, repeats }) });
}

/**
 * Pure. What a repetition says of the first call. That it was not taken says nothing, unless the
 * message itself is what is wrong.
 */
function saidByRepeat(outcome: SendOutcome): SendOutcome {
  if (outcome.outcome === 'accepted' || outcome.outcome === 'unknown') return outcome;
  const isOfMessage = outcome.outcome === 'refused' && causesOfMessage.has(outcome.cause);
  return isOfMessage ? outcome : { outcome: 'unknown', reason: outcome.reason };
}
