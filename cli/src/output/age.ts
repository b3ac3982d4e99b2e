const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * How long ago an ISO 8601 time was, in one unit, as kubectl's AGE column has it: `95s`, `12m`,
 * `30h`, `5d`. A time to come counts as now; `-` where the text is no time.
 */
export function formatAge(timestamp: string, now: Date): string {
  const ms = now.getTime() - Date.parse(timestamp);
  if (Number.isNaN(ms)) return '-';
  if (ms < 2 * MINUTE) return `${Math.max(0, Math.floor(ms / SECOND))}s`;
  if (ms < 2 * HOUR) return `${Math.floor(ms / MINUTE)}m`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)}h`;
  return `${Math.floor(ms / DAY)}d`;
}

/** A duration, with one decimal below ten seconds: `0.4s`, `42s`, `3m12s`. */
export function formatDuration(seconds: number): string {
  if (seconds < 9.95) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  return whole < 120 ? `${whole}s` : `${Math.floor(whole / 60)}m${whole % 60}s`;
}
