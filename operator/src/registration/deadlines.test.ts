import { expect, test } from 'vitest';
import { createDeadlines, type Deadlines } from './deadlines.ts';

const TTL = 60_000;
const beat = (overrides: Partial<{ ownerUid: string; ageMs: number; ttlMs: number }> = {}) => ({
  ownerUid: 'uid-1',
  ageMs: 0,
  ttlMs: TTL,
  ...overrides,
});

interface Case {
  readonly sentence: string;
  readonly events: (deadlines: Deadlines) => void;
  readonly connectedSinceMs?: number | undefined;
  readonly deadlineMs: number | undefined;
}

const registered = (deadlines: Deadlines, atMs = 1000, uid = 'uid-1') =>
  deadlines.registrationSeen('shop', { uid, ttlMs: TTL }, atMs);

test.each<Case>([
  {
    sentence: 'what was never seen has no deadline',
    events: () => {},
    deadlineMs: undefined,
  },
  {
    sentence: 'a registration without a Lease has one TTL from when it was first seen',
    events: (deadlines) => {
      registered(deadlines);
      registered(deadlines, 5000);
    },
    deadlineMs: 61_000,
  },
  {
    sentence: 'a heartbeat gives one TTL from when its Lease was seen to change',
    events: (deadlines) => {
      registered(deadlines);
      deadlines.heartbeatSeen('shop', beat(), 10_000);
    },
    deadlineMs: 70_000,
  },
  {
    sentence: 'a Lease seen before its registration counts as well',
    events: (deadlines) => {
      deadlines.heartbeatSeen('shop', beat(), 500);
      registered(deadlines);
    },
    deadlineMs: 60_500,
  },
  {
    sentence: 'a flushed heartbeat counts from the heartbeat, not from the flush',
    events: (deadlines) => {
      registered(deadlines);
      deadlines.heartbeatSeen('shop', beat({ ageMs: 12_000 }), 20_000);
    },
    deadlineMs: 68_000,
  },
  {
    sentence: 'an older heartbeat that is written later undoes nothing',
    events: (deadlines) => {
      registered(deadlines);
      deadlines.heartbeatSeen('shop', beat(), 20_000);
      deadlines.heartbeatSeen('shop', beat({ ageMs: 15_000 }), 21_000);
    },
    deadlineMs: 80_000,
  },
  {
    sentence: 'an age beyond the TTL counts as the TTL',
    events: (deadlines) => {
      registered(deadlines);
      deadlines.heartbeatSeen('shop', beat({ ageMs: 3_600_000 }), 100_000);
    },
    deadlineMs: 100_000,
  },
  {
    sentence: 'an age from the future counts as none',
    events: (deadlines) => {
      registered(deadlines);
      deadlines.heartbeatSeen('shop', beat({ ageMs: -3_600_000 }), 100_000);
    },
    deadlineMs: 160_000,
  },
  {
    sentence: 'the TTL of the Lease goes before that of the registration',
    events: (deadlines) => {
      registered(deadlines);
      deadlines.heartbeatSeen('shop', beat({ ttlMs: 5000 }), 100_000);
    },
    deadlineMs: 105_000,
  },
  {
    sentence: 'the Lease of a predecessor does not count',
    events: (deadlines) => {
      registered(deadlines);
      deadlines.heartbeatSeen('shop', beat({ ownerUid: 'uid-0' }), 30_000);
    },
    deadlineMs: 61_000,
  },
  {
    sentence: 'a Lease that is deleted before its time gives one TTL from then',
    events: (deadlines) => {
      registered(deadlines);
      deadlines.heartbeatSeen('shop', beat(), 10_000);
      deadlines.leaseGone('shop', 30_000);
    },
    deadlineMs: 90_000,
  },
  {
    sentence: 'a Lease that is deleted after its time leaves the deadline where it was',
    events: (deadlines) => {
      registered(deadlines);
      deadlines.heartbeatSeen('shop', beat(), 10_000);
      deadlines.leaseGone('shop', 70_001);
    },
    deadlineMs: 70_000,
  },
  {
    sentence: 'a new registration of the name starts anew',
    events: (deadlines) => {
      registered(deadlines);
      deadlines.heartbeatSeen('shop', beat(), 10_000);
      deadlines.registrationGone('shop');
      registered(deadlines, 50_000, 'uid-2');
    },
    deadlineMs: 110_000,
  },
  {
    sentence: 'while blind there is no deadline',
    events: (deadlines) => registered(deadlines),
    connectedSinceMs: undefined,
    deadlineMs: undefined,
  },
  {
    sentence: 'after a blind spot everything has one full TTL',
    events: (deadlines) => {
      registered(deadlines);
      deadlines.heartbeatSeen('shop', beat(), 10_000);
    },
    connectedSinceMs: 300_000,
    deadlineMs: 360_000,
  },
])('$sentence', (row) => {
  const deadlines = createDeadlines();
  row.events(deadlines);
  expect(deadlines.deadlineMs('shop', 'connectedSinceMs' in row ? row.connectedSinceMs : 0)).toBe(row.deadlineMs);
});

test('reports when a TTL gets shorter, and only then', () => {
  const deadlines = createDeadlines();
  registered(deadlines);
  expect(deadlines.heartbeatSeen('shop', beat(), 2000)).toBe(false);
  expect(deadlines.heartbeatSeen('shop', beat({ ttlMs: 5000 }), 3000)).toBe(true);
  expect(deadlines.heartbeatSeen('shop', beat({ ttlMs: 5000 }), 4000)).toBe(false);
  expect(deadlines.heartbeatSeen('shop', beat(), 5000)).toBe(false);
});
