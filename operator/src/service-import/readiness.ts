/** An EndpointSlice of a Service. */
interface Slice {
  /** `namespace/name` of the Service. */
  readonly serviceKey: string;
  readonly name: string;
}

/**
 * Which Services have a ready endpoint and, for the others, since when they have none (monotonic
 * ms).
 */
export function createReadiness() {
  const readySlices = new Map<string, Set<string>>();
  const unreadySince = new Map<string, number>();

  function sliceGone({ serviceKey, name }: Slice, nowMs: number): void {
    const slices = readySlices.get(serviceKey);
    if (slices?.delete(name) !== true || slices.size > 0) return;
    readySlices.delete(serviceKey);
    unreadySince.set(serviceKey, nowMs);
  }

  return {
    sliceSeen(slice: Slice, ready: boolean, nowMs: number): void {
      if (!ready) return sliceGone(slice, nowMs);
      const { serviceKey, name } = slice;
      const slices = readySlices.get(serviceKey) ?? new Set();
      readySlices.set(serviceKey, slices.add(name));
      unreadySince.delete(serviceKey);
    },
    sliceGone,
    isReady: (serviceKey: string): boolean => readySlices.has(serviceKey),
    /**
     * Since when a Service has had no ready endpoint, at the latest since the first time that this
     * was asked.
     */
    unreadySinceMs(serviceKey: string, nowMs: number): number | undefined {
      if (readySlices.has(serviceKey)) return undefined;
      const since = unreadySince.get(serviceKey) ?? nowMs;
      unreadySince.set(serviceKey, since);
      return since;
    },
    /** Nobody asks for this Service any more. */
    forget: (serviceKey: string): void => void unreadySince.delete(serviceKey),
  };
}
