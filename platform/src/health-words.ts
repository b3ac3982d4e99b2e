const AILING: ReadonlySet<string> = new Set(['unhealthy', 'degraded', 'draining']);
const WELL: ReadonlySet<string> = new Set(['healthy', 'ok', 'up', 'pass', 'passing', 'ready', 'running', 'serving']);

/**
 * Whether a service that reports this word of its health is to get requests only where no other
 * does (docs/decisions/0300). Words that nobody knows say nothing against it.
 */
export function isAiling(word: string): boolean {
  return AILING.has(word.toLowerCase());
}

/** Whether the word says that all is well, as a delivery that waits for it has to know. */
export function isWell(word: string): boolean {
  return WELL.has(word.toLowerCase());
}
