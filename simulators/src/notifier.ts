import type { Clock } from '@rollcall/platform/clock.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { ask } from '@rollcall/platform/outbound/exchange.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { Agent } from 'undici';
import { readable } from './bodies.ts';
import type { Faults } from './faults.ts';

/** Providers wait about so long for an answer: Yoco and Twilio 15 s. */
const ANSWER_WITHIN_MS = 15_000;
const ANSWER_LIMIT_BYTES = 65_536;
const DELAY_MS = 1000;
const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost']);

/** How one attempt is to be made. */
interface NotificationAttempt {
  /** Wall-clock time of the attempt, for signatures with one. */
  readonly at: Date;
  /** Whether the signature must not hold, or what stands in its place be wrong. */
  readonly isForged: boolean;
}

/** A request as it goes out. */
interface NotificationRequest {
  readonly url: string;
  /** With `content-type`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** One notification, made anew for each attempt. */
export type Notification = (attempt: NotificationAttempt) => NotificationRequest;

/** An attempt that was made. */
export interface SentNotification extends NotificationRequest {
  readonly at: Date;
  /** 1 for the first. */
  readonly attempt: number;
  readonly isForged: boolean;
  /** Undefined: there was no answer, for the reason in `error`. */
  readonly status: number | undefined;
  readonly error: string | undefined;
}

export interface NotifierOptions {
  readonly faults: Faults;
  readonly clock: Clock;
  /** After how long one that was not answered with 2xx is sent again, time after time. */
  readonly retryDelaysMs: readonly number[];
}

/** Sends what a provider says of its own accord. */
export interface Notifier {
  /**
   * Sends a sequence in its order, the next one once the last one has been taken or given up.
   * Resolves when the caller may answer: at once, but for `before-the-answer`.
   *
   * @param answered resolves when the request that caused them is answered.
   */
  send(sequence: readonly Notification[], answered: Promise<void>): Promise<void>;
  /** Every attempt so far, the oldest first. */
  sent(): readonly SentNotification[];
  /** Resolves when nothing is left to be sent, or sent again. */
  idle(): Promise<void>;
  /** Forgets what was sent, and drops what was to be. */
  clear(): Promise<void>;
  stop(): Promise<void>;
}

export function createNotifier({ faults, clock, retryDelaysMs }: NotifierOptions): Notifier {
  const agent = new Agent();
  const running = new Set<Promise<void>>();
  let sent: SentNotification[] = [];
  let dropped = new AbortController();

  async function attempt(notification: Notification, isForged: boolean, number: number): Promise<boolean> {
    const { signal } = dropped;
    const at = clock.now();
    const request = notification({ at, isForged });
    const common = { ...request, at, attempt: number, isForged };
    try {
      const { status } = await ask(
        agent,
        {
          method: 'POST',
          url: loopbackUrl(request.url),
          headers: request.headers,
          body: request.body,
          timeoutMs: ANSWER_WITHIN_MS,
          limitBytes: ANSWER_LIMIT_BYTES,
        },
        signal,
      );
      if (!signal.aborted) sent.push({ ...common, status, error: undefined });
      return status >= 200 && status < 300;
    } catch (error) {
      if (!signal.aborted) sent.push({ ...common, status: undefined, error: errorMessage(error) });
      return false;
    }
  }

  /** Until it is taken, or no delay is left. */
  async function deliver(notification: Notification, isForged: boolean): Promise<void> {
    const { signal } = dropped;
    for (const [index, delayMs] of [...retryDelaysMs, undefined].entries()) {
      if (signal.aborted || (await attempt(notification, isForged, index + 1))) return;
      if (delayMs === undefined || !(await sleep(delayMs, signal))) return;
    }
  }

  return {
    async send(sequence, answered) {
      const { signal } = dropped;
      const fault = faults.takeForNotification(describe(sequence, clock.now()));
      const kind = fault?.kind;
      if (kind === 'never') return;
      const ordered = kind === 'out-of-order' ? sequence.toReversed() : sequence;
      const run = async () => {
        for (const notification of ordered) {
          await deliver(notification, kind === 'bad-signature');
          if (kind === 'twice') await deliver(notification, false);
        }
      };
      if (kind === 'before-the-answer') {
        await run();
        return;
      }
      const runLater = async () => {
        await Promise.race([answered, abortOf(signal)]);
        if (kind === 'delayed') await sleep(fault?.delayMs ?? DELAY_MS, signal);
        if (!signal.aborted) await run();
      };
      const later = runLater();
      running.add(later);
      void later.finally(() => running.delete(later));
    },
    sent: () => sent,
    async idle() {
      while (running.size > 0) await Promise.all(running);
    },
    async clear() {
      dropped.abort();
      await Promise.all(running);
      dropped = new AbortController();
      sent = [];
    },
    async stop() {
      dropped.abort();
      await Promise.all(running);
      await agent.close();
    },
  };
}

/** Resolves when the signal aborts. */
function abortOf(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => resolve(), { once: true });
  return promise;
}

/** What rules for notifications match: every request of the sequence. */
function describe(sequence: readonly Notification[], at: Date): string {
  const requests = sequence.map((notification) => notification({ at, isForged: false }));
  return requests.map(({ url, headers, body }) => `POST ${url}\n${readable(body, headers['content-type'])}`).join('\n');
}

/** @throws Error for a host that is not this machine: nothing a simulator says may leave it. */
function loopbackUrl(text: string): URL {
  const url = new URL(text);
  if (!LOOPBACK.has(url.hostname)) throw new Error(`${url.hostname} is not this machine`);
  return url;
}
