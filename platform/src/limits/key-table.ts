import type { Count } from './limiter.ts';
import { advance, BUCKETS, bucketMsOf, copyWindow, count, createWindows, type Windows } from './sliding-window.ts';

/** Counts that those share who come when every key of the table is in use. */
const SHARED_SLOTS = 1024;

/**
 * Windows of one length by key, a bounded number of them.
 *
 * Keys are in a list, the one counted longest ago first. A new key gets the slot of the first one
 * if nothing of that counts any more, else a slot never used, else the shared slot that its hash
 * names: there it has at most its limit together with others. When it gets a slot of its own later,
 * it begins with what its shared slot has counted: too much, never too little.
 */
export class KeyTable {
  readonly #bucketMs: number;
  readonly #maxKeys: number;
  readonly #windows: Windows;
  readonly #slots = new Map<string, number>();
  readonly #keys: string[] = [];
  /** The list; its ends are joined by an entry of their own, after the last slot. */
  readonly #before: Int32Array;
  readonly #after: Int32Array;
  /** The last bucket in which a shared slot was counted in. */
  #sharedNewest = Number.NEGATIVE_INFINITY;

  constructor(windowMs: number, maxKeys: number) {
    this.#bucketMs = bucketMsOf(windowMs);
    this.#maxKeys = maxKeys;
    // The system gives memory when it is written to: unused slots cost none.
    this.#windows = createWindows(maxKeys + SHARED_SLOTS);
    this.#before = new Int32Array(maxKeys + 1);
    this.#after = new Int32Array(maxKeys + 1);
    this.#before[maxKeys] = maxKeys;
    this.#after[maxKeys] = maxKeys;
  }

  /** @param nowMs monotonic. */
  take(key: string, requests: number, nowMs: number): Count {
    const bucket = Math.floor(nowMs / this.#bucketMs);
    const windows = this.#windows;
    const slot = this.#slots.get(key) ?? this.#claim(key, bucket);
    advance(windows, slot, bucket);
    const newest = windows.newest[slot];
    const allowed = count(windows, slot, { bucket, requests });
    if (slot >= this.#maxKeys) this.#sharedNewest = bucket;
    else if (allowed && newest !== bucket) this.#moveToEnd(slot);
    const total = windows.total[slot] ?? 0;
    const oldest = windows.oldest[slot] ?? 0;
    return {
      allowed,
      remaining: Math.max(0, requests - total),
      untilFreeMs: (oldest + BUCKETS) * this.#bucketMs - nowMs,
    };
  }

  #claim(key: string, bucket: number): number {
    const slot = this.#freeSlot(bucket);
    if (slot === undefined) return this.#sharedSlot(key);
    this.#slots.set(key, slot);
    this.#keys[slot] = key;
    if (this.#sharedNewest > bucket - BUCKETS) copyWindow(this.#windows, this.#sharedSlot(key), slot);
    return slot;
  }

  /** @returns an empty slot at the end of the list; undefined when all are in use. */
  #freeSlot(bucket: number): number | undefined {
    const first = this.#after[this.#maxKeys] ?? this.#maxKeys;
    if (first !== this.#maxKeys) {
      advance(this.#windows, first, bucket);
      if (this.#windows.total[first] === 0) {
        this.#slots.delete(this.#keys[first] ?? '');
        this.#moveToEnd(first);
        return first;
      }
    }
    const unused = this.#keys.length;
    if (unused === this.#maxKeys) return undefined;
    this.#append(unused);
    return unused;
  }

  #sharedSlot(key: string): number {
    // FNV-1a.
    let hash = 0x811c9dc5;
    for (let index = 0; index < key.length; index += 1) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193);
    return this.#maxKeys + ((hash >>> 0) % SHARED_SLOTS);
  }

  #moveToEnd(slot: number): void {
    const before = this.#before[slot] ?? 0;
    const after = this.#after[slot] ?? 0;
    this.#after[before] = after;
    this.#before[after] = before;
    this.#append(slot);
  }

  #append(slot: number): void {
    const end = this.#maxKeys;
    const last = this.#before[end] ?? end;
    this.#after[last] = slot;
    this.#before[slot] = last;
    this.#after[slot] = end;
    this.#before[end] = slot;
  }
}
