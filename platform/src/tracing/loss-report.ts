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
  let untold = 0;
  let reason = '';
  let toldAtMs = Number.NEGATIVE_INFINITY;

  function tell(): void {
    log.warn({ spans: untold, reason }, 'spans were not exported');
    untold = 0;
    toldAtMs = clock.monotonicMs();
  }

  return {
    lost(spans, cause) {
      untold += spans;
      reason = errorMessage(cause).slice(0, REASON_MAX_LENGTH);
      if (clock.monotonicMs() - toldAtMs >= INTERVAL_MS) tell();
    },
    finish() {
      if (untold > 0) tell();
    },
  };
}
