/** client-go's limits (`tools/record/events_cache.go`). */
const BURST = 25;
const REFILL_MS = 300_000;
const SOURCES_REMEMBERED = 4096;

interface Bucket {
  tokens: number;
  filledAtMs: number;
}

/** A token bucket per object: 25 Events at once, then one every five minutes. */
export function createSpamFilter() {
  const buckets = new Map<string, Bucket>();
  return {
    /** @returns whether an Event on this object may be sent now; if so it has been counted. */
    allow(objectKey: string, nowMs: number): boolean {
      const bucket = buckets.get(objectKey) ?? { tokens: BURST, filledAtMs: nowMs };
      const tokens = Math.min(BURST, bucket.tokens + (nowMs - bucket.filledAtMs) / REFILL_MS);
      const allowed = tokens >= 1;
      remember(buckets, objectKey, { tokens: allowed ? tokens - 1 : tokens, filledAtMs: nowMs });
      return allowed;
    },
  };
}

/** Puts an entry into a map that forgets its least recently put entries. */
export function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= SOURCES_REMEMBERED) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    break;
  }
}
