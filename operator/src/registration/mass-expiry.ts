const WINDOW_MS = 10_000;
const MORE_THAN = 100;
const MORE_THAN_SHARE = 0.2;

/**
 * Notices when very many registrations expire at once: that is more often a broken network than
 * that many broken services.
 *
 * A mass expiry begins with more than 100 and more than 20 % within 10 s; it is over when no more
 * than 100 expire in as long.
 */
export function createMassExpiry() {
  let expiries: number[] = [];
  let active = false;
  return {
    /**
     * Counts one expiry.
     *
     * @param alive how many registrations are alive after it.
     * @returns how many expired within the window, once at the beginning of each mass expiry; else
     * undefined.
     */
    expired(alive: number, nowMs: number): number | undefined {
      const firstWithin = expiries.findIndex((atMs) => atMs > nowMs - WINDOW_MS);
      if (firstWithin !== 0) expiries = firstWithin === -1 ? [] : expiries.slice(firstWithin);
      expiries.push(nowMs);
      const count = expiries.length;
      const before = active;
      active = count > MORE_THAN && (before || count > MORE_THAN_SHARE * (alive + count));
      return active && !before ? count : undefined;
    },
  };
}
