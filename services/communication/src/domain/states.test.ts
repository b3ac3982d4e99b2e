import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type AttemptEvent,
  type AttemptState,
  attemptMoves,
  attemptStates,
  firstMessageState,
  type MessageEvent,
  type MessageState,
  messageMoves,
  messageStates,
  nextAttemptState,
  nextMessageState,
  type Receipt,
  receipts,
} from './states.ts';

const events = Object.keys(messageMoves) as MessageEvent[];

function after(state: MessageState, happened: readonly MessageEvent[]): MessageState {
  return happened.reduce((now, event) => nextMessageState(now, event) ?? now, state);
}

test('the table of messages is this one', () => {
  const table = messageStates.map((state) => [
    state,
    events.flatMap((event) => {
      const to = nextMessageState(state, event);
      return to === undefined || event === `receipt-${to}` ? [] : [`${event}: ${to}`];
    }),
  ]);
  expect(Object.fromEntries(table)).toEqual({
    scheduled: ['released: queued', 'cancelled: cancelled', 'suppressed: suppressed'],
    queued: ['begun: sending', 'accepted: sent', 'given-up: failed', 'cancelled: cancelled', 'suppressed: suppressed'],
    sending: ['accepted: sent', 'refused: failed', 'postponed: queued', 'lost: unknown', 'given-up: failed'],
    unknown: ['accepted: sent', 'refused: failed', 'postponed: queued', 'given-up: failed', 'restarted: queued'],
    sent: [],
    delivered: [],
    opened: [],
    bounced: [],
    complained: [],
    failed: ['restarted: queued'],
    cancelled: [],
    suppressed: [],
  });
});

test.each(['queued', 'sending', 'unknown', 'failed', 'cancelled', 'suppressed', 'sent'] satisfies MessageState[])(
  'receipts of a message that is %s end in the strongest one, in whatever order and however often they come',
  (state) => {
    const anyReceipts = fc.array(fc.constantFrom(...receipts), { minLength: 1, maxLength: 8 });
    const orders = anyReceipts.chain((came) =>
      fc.tuple(fc.constant(came), fc.shuffledSubarray(came, { minLength: came.length })),
    );
    fc.assert(
      fc.property(orders, ([came, shuffled]) => {
        const strongest = receipts.findLast((receipt) => came.includes(receipt));
        expect(after(state, came.map(asEvent))).toBe(strongest);
        expect(after(state, shuffled.map(asEvent))).toBe(strongest);
      }),
    );
  },
);

test('no receipt changes a message that is scheduled', () => {
  for (const receipt of receipts) expect(nextMessageState('scheduled', asEvent(receipt))).toBeUndefined();
});

test('what a provider took is never sent again, whatever happens', () => {
  fc.assert(
    fc.property(fc.constantFrom(...receipts), fc.array(fc.constantFrom(...events)), (state, happened) => {
      expect(receipts).toContain(after(state, happened));
    }),
  );
});

test('whatever happens to a message, no event of the same kind changes it twice in a row', () => {
  fc.assert(
    fc.property(fc.constantFrom(...messageStates), fc.constantFrom(...events), (state, event) => {
      expect(nextMessageState(after(state, [event]), event)).toBeUndefined();
    }),
  );
});

test('the table of attempts is this one', () => {
  const happens = Object.keys(attemptMoves) as AttemptEvent[];
  const table = attemptStates.map((state) => [
    state,
    happens.filter((event) => nextAttemptState(state, event) !== undefined),
  ]);
  expect(Object.fromEntries(table)).toEqual({
    begun: ['accepted', 'refused', 'failed', 'unknown', 'receipt'],
    accepted: [],
    refused: ['receipt'],
    failed: ['receipt'],
    unknown: ['accepted', 'refused', 'failed', 'receipt'],
  } satisfies Record<AttemptState, AttemptEvent[]>);
  expect(nextAttemptState('failed', 'receipt')).toBe('accepted');
});

const now = new Date('2026-11-27T10:00:00Z');

test.each([
  { isSuppressed: false, sendAt: undefined, first: 'queued' },
  { isSuppressed: false, sendAt: now, first: 'queued' },
  { isSuppressed: false, sendAt: new Date('2026-11-27T09:00:00Z'), first: 'queued' },
  { isSuppressed: false, sendAt: new Date('2026-11-27T10:00:01Z'), first: 'scheduled' },
  { isSuppressed: true, sendAt: undefined, first: 'suppressed' },
  { isSuppressed: true, sendAt: new Date('2026-11-27T10:00:01Z'), first: 'suppressed' },
])('a message for $sendAt begins as $first, suppressed: $isSuppressed', ({ isSuppressed, sendAt, first }) => {
  expect(firstMessageState({ isSuppressed, sendAt, now })).toBe(first);
});

function asEvent(receipt: Receipt): MessageEvent {
  return `receipt-${receipt}`;
}
