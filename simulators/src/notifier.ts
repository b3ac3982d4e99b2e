import type { Clock } from '@rollcall/platform/clock.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { ask } from '@rollcall/platform/outbound/exchange.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { Agent } from 'undici';
import { readable } from './bodies.ts';
import type { FaultRule, Faults } from './faults.ts';

/** Providers wait about so long for an answer: Yoco and Twilio 15 s. */
const ANSWER_WITHIN_MS = 15_000;
const ANSWER_LIMIT_BYTES = 65_536;
const DELAY_MS = 1000;
const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost']);

/** How one attempt is to be made. */
export interface NotificationAttempt {
  /** Wall-clock time of the attempt, for signatures with one. */
  readonly at: Date;
  /** Whether the signature must not hold, or what stands in its place be wrong. */
  readonly isForged: boolean;
  /** What it must say wrongly under a signature that holds; of payments only. */
  readonly wrong: 'wrong-amount' | 'wrong-merchant' | undefined;
}

/** A request as it goes out. */
export interface NotificationRequest {
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

/** When notifications are sent, where no fault says otherwise. */
export interface NotificationTiming {
  /** Resolves when the request that caused them is answered; they follow that. */
  readonly answered: Promise<void>;
  /** Whether they come before the answer instead, as PayFast's do. */
  readonly isBeforeTheAnswer: boolean;
}

/** How the attempts of a notification differ from what is right. */
type Distortion = Omit<NotificationAttempt, 'at'>;

interface Delivery {
  readonly notification: Notification;
  readonly distortion: Distortion;
}

const NOT_DISTORTED: Distortion = { isForged: false, wrong: undefined };

/** Sends what a provider says of its own accord. */
export interface Notifier {
  /**
   * Sends a sequence in its order, the next one once the last one has been taken or given up.
   * Resolves when the caller may answer: at once, but for `before-the-answer`, where each has been
   * tried once by then.
   */
  send(sequence: readonly Notification[], timing: NotificationTiming): Promise<void>;
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

  async function attempt({ notification, distortion }: Delivery, number: number): Promise<boolean> {
    const { signal } = dropped;
    const at = clock.now();
    const request = notification({ at, ...distortion });
    const common = { ...request, at, attempt: number, isForged: distortion.isForged };
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
  async function repeat(delivery: Delivery): Promise<void> {
    const { signal } = dropped;
    for (const [index, delayMs] of retryDelaysMs.entries()) {
      if (!(await sleep(delayMs, signal)) || (await attempt(delivery, index + 2))) return;
    }
  }

  function keepRunning(work: Promise<void>): void {
    running.add(work);
    void work.finally(() => running.delete(work));
  }

  return {
    async send(sequence, { answered, isBeforeTheAnswer }) {
      const { signal } = dropped;
      const fault = faults.takeForNotification(describe(sequence, clock.now()));
      const kind = fault?.kind;
      if (kind === 'never') return;
      const deliveries = deliveriesOf(sequence, kind);
      if (kind === 'before-the-answer' || (isBeforeTheAnswer && kind !== 'delayed')) {
        for (const delivery of deliveries) {
          if (!(await attempt(delivery, 1))) keepRunning(repeat(delivery));
        }
        return;
      }
      const runLater = async () => {
        await Promise.race([answered, abortOf(signal)]);
        if (kind === 'delayed') await sleep(fault?.delayMs ?? DELAY_MS, signal);
        for (const delivery of deliveries) {
          if (signal.aborted) return;
          if (!(await attempt(delivery, 1))) await repeat(delivery);
        }
      };
      keepRunning(runLater());
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

/** What is sent in which order, where the fault is of the kind. */
function deliveriesOf(sequence: readonly Notification[], kind: FaultRule['kind'] | undefined): readonly Delivery[] {
  const wrong = kind === 'wrong-amount' || kind === 'wrong-merchant' ? kind : undefined;
  const distortion = { isForged: kind === 'bad-signature', wrong };
  const ordered = kind === 'out-of-order' ? sequence.toReversed() : sequence;
  return ordered.flatMap((notification) => [
    { notification, distortion },
    ...(kind === 'twice' ? [{ notification, distortion: NOT_DISTORTED }] : []),
  ]);
}

/** Resolves when the signal aborts. */
function abortOf(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => resolve(), { once: true });
  return promise;
}

/** What rules for notifications match: every request of the sequence. */
function describe(sequence: readonly Notification[], at: Date): string {
  const requests = sequence.map((notification) => notification({ at, ...NOT_DISTORTED }));
  return requests.map(({ url, headers, body }) => `POST ${url}\n${readable(body, headers['content-type'])}`).join('\n');
}

/** @throws Error for a host that is not this machine: nothing a simulator says may leave it. */
function loopbackUrl(text: string): URL {
  const url = new URL(text);
  if (!LOOPBACK.has(url.hostname)) throw new Error(`${url.hostname} is not this machine`);
  return url;
}
