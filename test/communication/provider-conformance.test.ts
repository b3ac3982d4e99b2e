import type { SendOutcome } from '@rollcall/communication/domain/ports.ts';
import { describe, expect, test } from 'vitest';
import { BUSY_SECONDS, type Fault, faults, httpWorlds, type StartWorld, type World } from './provider-worlds.ts';
import { wireWorlds } from './wire-worlds.ts';

// What sending may rely on, whichever provider it is: a message goes to another provider only where
// this one surely took nothing, and where nobody can tell, the outcome says so.

const worlds: Readonly<Record<string, StartWorld>> = { ...httpWorlds, ...wireWorlds };
const { signal } = new AbortController();
/** A busy machine answers within it. */
const PATIENT = { timeoutMs: 15_000 };
/** Of a test that waits for the end of it: nothing else may take so long. */
const IMPATIENT = { timeoutMs: 5000 };

const answered = faults.filter((fault) => fault !== 'accept-and-hang');

interface Expected {
  readonly outcome: SendOutcome['outcome'];
  readonly taken: number;
}

const expected: Readonly<Record<Fault, Expected>> = {
  'accept-and-hang': { outcome: 'unknown', taken: 1 },
  // A server that fails may have taken it before.
  error: { outcome: 'unknown', taken: 0 },
  busy: { outcome: 'failed', taken: 0 },
  garbage: { outcome: 'unknown', taken: 1 },
  'broken-ids': { outcome: 'accepted', taken: 1 },
  half: { outcome: 'unknown', taken: 1 },
  reset: { outcome: 'unknown', taken: 1 },
  slow: { outcome: 'accepted', taken: 1 },
};

/** Where a protocol has a word of its own: an answer of 451, or a status of SMPP, says that nothing was taken. */
const errorOf: Readonly<Record<string, SendOutcome['outcome']>> = { smtp: 'failed', smpp: 'failed' };
/** How long a busy provider is left alone, in milliseconds, where the protocol has no word for it. */
const pauseOf: Readonly<Record<string, number>> = { smtp: 1000, smpp: 1000 };
/** Who gave the address of a push service chose who answers there: its refusal says nothing of our account. */
const wrongSecretOf: Readonly<Record<string, string>> = { webpush: 'recipient' };

function expectedOf(name: string, fault: Fault): Expected {
  const usual = expected[fault];
  return fault === 'error' ? { ...usual, outcome: errorOf[name] ?? usual.outcome } : usual;
}

/** Another message: a provider that knows repetitions would take the same one for one. */
function another({ message }: World) {
  return { ...message, deduplicationId: message.deduplicationId + 1 };
}

/** What a message becomes that meets a fault, after which the next one is taken. */
async function meeting(world: World, fault: Fault): Promise<Expected> {
  world.meet(fault);
  const { outcome } = await world.provider.send(world.message, signal);
  const taken = world.taken();
  const next = await world.provider.send(another(world), signal);
  expect([next.outcome, world.taken()]).toEqual(['accepted', taken + 1]);
  return { outcome, taken };
}

// All at once, for each waits for its end.
test('a message that was taken and is not answered in time is unknown, whichever provider has it', async () => {
  await using stack = new AsyncDisposableStack();
  const outcomes = await Promise.all(
    Object.entries(worlds).map(async ([name, start]) => {
      const world = stack.use(await start(IMPATIENT));
      return [name, await meeting(world, 'accept-and-hang')] as const;
    }),
  );
  const unknown = Object.keys(worlds).map((name) => [name, expected['accept-and-hang']]);
  expect(outcomes).toEqual(unknown);
});

describe.each(Object.entries(worlds))('%s', (name, start) => {
  test.each(answered)('what it means that a message met %s', async (fault) => {
    await using world = await start(PATIENT);
    expect(await meeting(world, fault)).toEqual(expectedOf(name, fault));
  });

  test('a busy one is left alone for as long as it says', async () => {
    await using world = await start(PATIENT);
    world.meet('busy');
    const outcome = await world.provider.send(world.message, signal);
    const pauseMs = pauseOf[name] ?? BUSY_SECONDS * 1000;
    expect('retryAfterMs' in outcome ? outcome.retryAfterMs : undefined).toBe(pauseMs);
  });

  test('the id by which it knows a message is storable', async () => {
    await using world = await start(PATIENT);
    world.meet('broken-ids');
    const outcome = await world.provider.send(world.message, signal);
    const id = outcome.outcome === 'accepted' ? outcome.providerId : '';
    expect(id).not.toBe('');
    expect([id.isWellFormed(), id.includes('\0')]).toEqual([true, false]);
  });

  test('a call that is given up may have been taken, and one that did not begin was not', async () => {
    await using world = await start(PATIENT);
    world.meet('accept-and-hang');
    const giveUp = new AbortController();
    const outcome = world.provider.send(world.message, giveUp.signal);
    await expect.poll(() => world.taken()).toBe(1);
    giveUp.abort();
    expect(await outcome).toMatchObject({ outcome: 'unknown' });
    expect(await world.provider.send(another(world), giveUp.signal)).toMatchObject({ outcome: 'failed' });
    expect(world.taken()).toBe(1);
  });

  test('where nobody listens, surely nothing was taken', async () => {
    await using world = await start(PATIENT);
    await world.stop();
    expect(await world.provider.send(world.message, signal)).toMatchObject({ outcome: 'failed' });
  });

  test('a wrong secret is no fault of the message', async () => {
    await using world = await start({ ...PATIENT, isSecretWrong: true });
    const cause = wrongSecretOf[name] ?? 'credentials';
    expect(await world.provider.send(world.message, signal)).toMatchObject({ outcome: 'refused', cause });
    expect(world.taken()).toBe(0);
  });
});
