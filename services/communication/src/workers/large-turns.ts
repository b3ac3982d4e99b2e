import type { Clock } from '@rollcall/platform/clock.ts';

/** Of large contents on their way, each of which takes several times its size; one alone may have more. */
const MOST_BYTES = 16 * 2 ** 20;
/** Between two that come back for their turn. */
const EVERY_MS = 250;
/** Who does not come back for its place by then loses it: another replica may have sent it, or nobody. */
const PLACE_FOR_MS = 5000;

/** A message with a large content. */
export interface LargeMessage {
  readonly id: string;
  readonly contentBytes: number;
}

/** Where the turn has come, what ends it; else in how many milliseconds to ask again. */
export type LargeTurn = { readonly leave: () => void } | { readonly backInMs: number };

/**
 * Turns of large messages, of one replica. The first that gets none has the next place: no smaller one
 * that still fits takes it. The others have a place in a line, so that each asks about once.
 */
export function createLargeTurns(clock: Clock): { tryEnter(message: LargeMessage): LargeTurn } {
  let bytesUnderWay = 0;
  let lineEndsMs = Number.NEGATIVE_INFINITY;
  let next: (LargeMessage & { readonly untilMs: number }) | undefined;

  function fits({ id, contentBytes }: LargeMessage): boolean {
    const kept = next === undefined || next.id === id ? 0 : next.contentBytes;
    const bytes = bytesUnderWay + kept;
    return bytes === 0 || bytes + contentBytes <= MOST_BYTES;
  }

  function enter({ id, contentBytes }: LargeMessage): LargeTurn {
    if (next?.id === id) next = undefined;
    bytesUnderWay += contentBytes;
    return { leave: () => void (bytesUnderWay -= contentBytes) };
  }

  return {
    tryEnter(message) {
      const nowMs = clock.monotonicMs();
      if (next !== undefined && next.untilMs <= nowMs) next = undefined;
      if (fits(message)) return enter(message);
      if (next === undefined || next.id === message.id) {
        next = { ...message, untilMs: nowMs + PLACE_FOR_MS };
        return { backInMs: EVERY_MS };
      }
      lineEndsMs = Math.max(nowMs, lineEndsMs) + EVERY_MS;
      return { backInMs: lineEndsMs - nowMs };
    },
  };
}
