import { commonError } from '../common-errors.ts';
import { createConcurrencyLimiter } from '../queues/concurrency-limiter.ts';
import { identityHeaders, unverifiedSubject } from './identity.ts';
import type { App } from './server.ts';

/** From here on a body counts as large, in bytes. */
export const LARGE_BYTES = 2 ** 20;
const AT_A_TIME = 2;
const MOST_WAITING = 60;
const MOST_WAITING_OF_ONE = 30;
/** Less than a gateway waits for an answer. */
const LONGEST_WAIT_MS = 10_000;
const RETRY_AFTER_SECONDS = 5;

/**
 * Reads and serves few large bodies at a time, one of a subject, as each takes several times its size on its way.
 * Others wait before theirs are read, and are answered with UNAVAILABLE where their turn does not come.
 * A body whose length is not said counts as large, where the route takes large ones (docs/decisions/0456).
 *
 * @param maxWaitMs for a turn; 10 s when absent.
 */
export function limitLargeBodies(app: App, { maxWaitMs = LONGEST_WAIT_MS } = {}): void {
  const limiter = createConcurrencyLimiter({
    most: AT_A_TIME,
    mostPerKey: 1,
    capacity: AT_A_TIME + MOST_WAITING,
    waitingPerKey: MOST_WAITING_OF_ONE,
    maxWaitMs,
    refuse: () =>
      commonError('UNAVAILABLE', {
        message: 'Too many large requests wait at this replica; try again after the time in Retry-After',
        headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
      }),
  });
  app.addHook('preParsing', async ({ headers, routeOptions }, { raw }) => {
    if (!isLarge(headers) || (routeOptions.bodyLimit ?? app.initialConfig.bodyLimit ?? 0) < LARGE_BYTES) return;
    // Who broke off while it was asked who calls will not say so again.
    if (raw.closed) return;
    const isOver = new Promise<void>((resolve) => void raw.once('close', resolve));
    const token = headers[identityHeaders.token];
    const subject = typeof token === 'string' ? unverifiedSubject(token) : undefined;
    await new Promise<void>((begin, refuse) => {
      const work = () => {
        begin();
        return isOver;
      };
      limiter.run(subject ?? '', work).catch(refuse);
    });
  });
}

function isLarge(headers: Readonly<Record<string, unknown>>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) >= LARGE_BYTES;
}
