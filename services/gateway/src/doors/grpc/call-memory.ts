import { type Link, LinkedList } from '@rollcall/platform/linked-list.ts';

/** A call of which one side does not take what the other sends. */
export interface HeldCall {
  /** Whose it is. */
  readonly subject: string;
  /** Ends it. */
  cutOff(): void;
}

/** What is kept of all calls together, beyond what passes through. */
export interface CallMemory {
  /**
   * Reads a call no further, because one side of it does not take what came. Where there are too many such calls, one is ended of the
   * subject that has most of them: the one that has been held back for longest.
   *
   * @returns to be unlinked when it goes on.
   */
  hold(call: HeldCall): Link<HeldCall>;
  /** @returns whether so many bytes of a call may be kept to be sent again. */
  keep(bytes: number): boolean;
  /** They are kept no longer. */
  drop(bytes: number): void;
}

/** @param limits calls that are held back at once; bytes that are kept to be sent again. */
export function createCallMemory(limits: { readonly heldCalls: number; readonly replayBytes: number }): CallMemory {
  const held = new LinkedList<HeldCall>();
  let leftBytes = limits.replayBytes;
  return {
    hold(call) {
      // Before it is added: the one that is ended may be this one, which is held back in its other direction, too.
      if (held.size >= limits.heldCalls) longestOfMost(held, call.subject)?.cutOff();
      return held.add(call);
    },
    keep(bytes) {
      if (bytes > leftBytes) return false;
      leftBytes -= bytes;
      return true;
    },
    drop(bytes) {
      leftBytes += bytes;
    },
  };
}

/** @param coming has one more. */
function longestOfMost(held: LinkedList<HeldCall>, coming: string): HeldCall | undefined {
  const counts = new Map([[coming, 1]]);
  const calls = held.links().map(({ value }) => value);
  for (const { subject } of calls) counts.set(subject, (counts.get(subject) ?? 0) + 1);
  const most = Math.max(...counts.values());
  return calls.find(({ subject }) => counts.get(subject) === most) ?? held.first;
}
