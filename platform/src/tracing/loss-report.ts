import type { Clock } from '../clock.ts';
import { errorMessage } from '../errors.ts';
import type { Logger } from '../process/log.ts';

/** Reports spans that reached no collector. */
export interface LossReport {
  lost(spans: number, cause: unknown): void;
  /** Reports what has not been reported yet. */
  finish(): void;
}

const INTERVAL_MS = 60_000;
/** What a collector says may be as long as it likes. */
const REASON_MAX_LENGTH = 200;

/**
 * Logs at most once in a minute, however much is lost; what was lost meanwhile is in the next line.
 */
export function createLossReport(log: Logger, clock: Clock): LossReport {
  let unreported = 0;
  let reason = '';
  let reportedAtMs = Number.NEGATIVE_INFINITY;

  function tell(): void {
    log.warn({ spans: unreported, reason }, 'spans were not exported');
    unreported = 0;
    reportedAtMs = clock.monotonicMs();
  }

  return {
    lost(spans, cause) {
      unreported += spans;
      reason = errorMessage(cause).slice(0, REASON_MAX_LENGTH);
      if (clock.monotonicMs() - reportedAtMs >= INTERVAL_MS) tell();
    },
    finish() {
      if (unreported > 0) tell();
    },
  };
}
