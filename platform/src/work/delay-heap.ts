interface Entry {
  readonly key: string;
  readonly atMs: number;
}

/**
 * Keys that become due, the earliest first. A key is in it once, with the earliest of the times it
 * was given.
 */
export interface DelayHeap {
  /** @returns false when the key is already there with an earlier or the same time. */
  push(key: string, atMs: number): boolean;
  /** When the first key is due; undefined when empty. */
  nextAtMs(): number | undefined;
  /** Removes every key that is due at `nowMs`, in the order in which they became due. */
  popDue(nowMs: number): string[];
  clear(): void;
}

/**
 * A binary heap; an entry that an earlier one has replaced stays in it until it comes up, and is
 * then dropped.
 */
export function createDelayHeap(): DelayHeap {
  const heap: Entry[] = [];
  const dueAt = new Map<string, number>();

  function siftUp(entry: Entry): void {
    let index = heap.length;
    heap.push(entry);
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = heap[parentIndex];
      if (parent === undefined || parent.atMs <= entry.atMs) break;
      heap[index] = parent;
      index = parentIndex;
    }
    heap[index] = entry;
  }

  function removeFirst(): void {
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let index = 0;
    for (;;) {
      const child = smallerChild(heap, index);
      const entry = heap[child];
      if (entry === undefined || entry.atMs >= last.atMs) break;
      heap[index] = entry;
      index = child;
    }
    heap[index] = last;
  }

  /** The first entry that still counts. */
  function first(): Entry | undefined {
    for (let entry = heap[0]; entry !== undefined; entry = heap[0]) {
      if (dueAt.get(entry.key) === entry.atMs) return entry;
      removeFirst();
    }
    return undefined;
  }

  return {
    push(key, atMs) {
      const known = dueAt.get(key);
      if (known !== undefined && known <= atMs) return false;
      dueAt.set(key, atMs);
      siftUp({ key, atMs });
      return true;
    },
    nextAtMs: () => first()?.atMs,
    popDue(nowMs) {
      const due: string[] = [];
      for (let entry = first(); entry !== undefined && entry.atMs <= nowMs; entry = first()) {
        due.push(entry.key);
        dueAt.delete(entry.key);
        removeFirst();
      }
      return due;
    },
    clear() {
      heap.length = 0;
      dueAt.clear();
    },
  };
}

function smallerChild(heap: readonly Entry[], index: number): number {
  const left = 2 * index + 1;
  const [a, b] = [heap[left], heap[left + 1]];
  return a !== undefined && b !== undefined && b.atMs < a.atMs ? left + 1 : left;
}
