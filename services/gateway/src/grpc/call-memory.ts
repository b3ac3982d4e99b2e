import { type Link, LinkedList } from '@rollcall/platform/linked-list.ts';

/** A call of which one side does not take what the other sends. */
export interface HeldCall {
  /** Ends it. */
  cutOff(): void;
}

/** What is kept of all calls together, beyond what passes through. */
export interface CallMemory {
  /**
   * Reads a call no further, because one side of it does not take what came. Where there are too many such calls, the one that has
   * been held back for longest is ended.
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
      if (held.size >= limits.heldCalls) held.first?.cutOff();
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
