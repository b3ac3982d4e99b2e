import type { Clock } from '@rollcall/platform/clock.ts';
import { type Breaker, createBreaker } from '@rollcall/platform/outbound/breaker.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { Ways } from '../domain/acceptance.ts';
import { type Way } from '../domain/delivery.ts';
import { type RouteEntry, routeFor } from '../domain/dispatch.ts';
import { type Channel, channels, type Envelope } from '../domain/messages.ts';
import type {
  NotificationReading,
  OutgoingMessage,
  ProviderNotification,
  ProviderReport,
  SendOutcome,
} from '../domain/ports.ts';
import { type ShownReason, shownReason, withReason } from '../domain/reasons.ts';
import { pushPlatforms } from '../domain/recipients.ts';
import { type AnyProvider, createProvider, type ProviderDeps } from './create-provider.ts';
import type { ProviderSettings } from './provider-settings.ts';
import type { ProvidersConfig } from './providers-file.ts';

const BREAKER = { consecutiveFailures: 5, openMs: 1000, maxOpenMs: 30_000, probeMs: 60_000 };
/** A call of SMTP has several steps, each of which has the timeout. */
const CALL_TIMEOUTS = 2;

/** How a provider does, as this replica sees it. */
export interface OutletHealth {
  readonly name: string;
  readonly kind: string;
  readonly channel: Channel;
  readonly priority: number;
  readonly weight: number;
  /** `paused`: it asked for it. `failing`: it is tried now and then. */
  readonly status: 'available' | 'paused' | 'failing';
  /** The last call that says that it fails. */
  readonly lastError: (ShownReason & { readonly at: string }) | null;
  /** Since when none has said that it works. */
  readonly failingSince: string | null;
  /** While it is left alone. */
  readonly nextTryAt: string | null;
}

/** A provider with what keeps it from being called too often. */
interface Outlet extends Way {
  readonly channel: Channel;
  /** Undefined: it sends none. */
  readNotification(notification: ProviderNotification): Promise<NotificationReading | undefined>;
  health(): OutletHealth;
}

/** All providers of one replica. */
export interface Outlets {
  readonly ways: Ways;
  /** Those that can take a message, in the order of the file. */
  routeOf(channel: Channel, envelope: Envelope): readonly RouteEntry[];
  find(name: string): Outlet | undefined;
  health(): readonly OutletHealth[];
  /** Begins to hand on what providers say over connections of their own. @param keep see {@link MessageProvider}. */
  onReports(keep: (provider: string, reports: readonly ProviderReport[]) => Promise<void>): void;
  close(): Promise<void>;
}

export async function createOutlets(config: ProvidersConfig, deps: ProviderDeps): Promise<Outlets> {
  const made = await Promise.all(
    channels.flatMap((channel) =>
      config[channel].providers.map(async (settings) => ({
        settings,
        outlet: createOutlet(await createProvider(settings, deps), { settings, channel, clock: deps.clock }),
      })),
    ),
  );
  const byName = new Map(made.map((each) => [each.settings.name, each]));
  const byCountry = Object.fromEntries(
    Object.entries(config.sms.byCountry).map(([country, names]) => [
      country,
      names.map((provider, priority) => ({ provider, priority, weight: 1 })),
    ]),
  );
  const tables = {
    email: { entries: entriesOf(config.email.providers) },
    sms: { entries: entriesOf(config.sms.providers), byCountry },
    push: { entries: entriesOf(config.push.providers) },
  };

  function routeOf(channel: Channel, envelope: Pick<Envelope, 'from' | 'platform' | 'country'>): readonly RouteEntry[] {
    return routeFor(tables[channel], envelope.country).filter(({ provider }) => {
      const settings = byName.get(provider)?.settings;
      return settings !== undefined && takes(settings, envelope, config.email.from?.address);
    });
  }

  return {
    ways: {
      has: (channel, envelope) => routeOf(channel, envelope).length > 0,
      mayBeFrom: (from) => config.email.providers.length === 0 || routeOf('email', { from }).length > 0,
      from: config.email.from,
      region: config.sms.region,
      platforms: pushPlatforms.filter((platform) => config.push.providers.some(({ kind }) => kind === platform)),
    },
    routeOf,
    find: (name) => byName.get(name)?.outlet,
    health: () => made.map(({ outlet }) => outlet.health()),
    onReports(keep) {
      for (const { outlet } of made) outlet.onReports((reports) => keep(outlet.name, reports));
    },
    close: async () => void (await Promise.all(made.map(({ outlet }) => outlet.close()))),
  };
}

function entriesOf(providers: readonly ProviderSettings[]): readonly RouteEntry[] {
  return providers.map(({ name: provider, priority, weight }) => ({ provider, priority, weight }));
}

/** Pure. Whether mail may be from there, or the devices are of that service. */
function takes(
  settings: ProviderSettings,
  { from, platform }: Pick<Envelope, 'from' | 'platform'>,
  usual: string | undefined,
): boolean {
  if (from !== undefined && 'senders' in settings) {
    const domain = from.slice(from.lastIndexOf('@'));
    return settings.senders?.some((each) => each === from || each === domain) ?? from === usual;
  }
  return from !== undefined ? from === usual : platform === undefined || settings.kind === platform;
}

interface OwnOutlet extends Outlet {
  onReports(keep: (reports: readonly ProviderReport[]) => Promise<void>): void;
  close(): Promise<void>;
}

interface OutletOptions {
  readonly settings: ProviderSettings;
  readonly channel: Channel;
  readonly clock: Clock;
}

function createOutlet(provider: AnyProvider, { settings, channel, clock }: OutletOptions): OwnOutlet {
  const { name, kind, priority, weight, timeoutSeconds } = settings;
  const breaker = createBreaker(clock, BREAKER);
  const gate = createGate(clock, breaker, settings.ratePerSecond);
  return {
    name,
    channel,
    idempotentForMs: provider.idempotentForMs,
    callMs: CALL_TIMEOUTS * timeoutSeconds * 1000,
    ...gate,
    async send(message, signal) {
      const outcome = await sendBy(provider, message, signal);
      // A browser's push service is an address that a caller has named: it says nothing of others.
      if (kind === 'webpush') breaker.abandoned();
      else gate.report(outcome);
      return outcome;
    },
    readNotification: async (notification) => provider.readNotification?.(notification),
    onReports: (keep) => provider.onReports?.(keep),
    health: () => ({ name, kind, channel, priority, weight, ...gate.health() }),
    close: () => provider.close(),
  };
}

/** What an outcome says of the provider itself. */
export function signalOf(outcome: SendOutcome): 'good' | 'bad' | 'none' {
  switch (outcome.outcome) {
    case 'accepted':
      return 'good';
    case 'refused':
      return outcome.cause === 'recipient' || outcome.cause === 'content' ? 'good' : 'bad';
    case 'failed':
      // A server of mail that defers one recipient, or a provider that asks to wait (SMPP: RMSGQFUL, RTHROTTLED).
      return /^(?:4\d\d|smpp (?:20|88))(?: |$)/.test(outcome.reason) ? 'none' : 'bad';
    case 'unknown':
      return 'bad';
    default:
      return outcome satisfies never;
  }
}

/** A message that has to wait longer for its turn waits in the database. */
const LONGEST_TURN_MS = 1000;
/** Where another message is the one that tries a provider that failed. */
const PROBED_PAUSE_MS = 1000;

/**
 * Turns of a provider that has a rate. Who is told to come back later has a place in a line, so that
 * each asks about once: else everybody who waits would ask for every turn.
 */
function createTurns(clock: Clock, everyMs: number) {
  let nextMs = Number.NEGATIVE_INFINITY;
  let lineEndsMs = Number.NEGATIVE_INFINITY;
  return {
    inMs: () => Math.max(0, nextMs - clock.monotonicMs()),
    /** @returns when it is one's turn, which is then taken; or where one has to come back, when. */
    take(): { readonly turnInMs: number } | { readonly backInMs: number } {
      const nowMs = clock.monotonicMs();
      const turnMs = Math.max(nowMs, nextMs);
      if (turnMs - nowMs <= LONGEST_TURN_MS) {
        nextMs = turnMs + everyMs;
        return { turnInMs: turnMs - nowMs };
      }
      lineEndsMs = Math.max(lineEndsMs, turnMs) + everyMs;
      return { backInMs: lineEndsMs - everyMs - nowMs };
    },
  };
}

/** The breaker of a provider, its rate, and the pauses that it asked for. */
function createGate(clock: Clock, breaker: Breaker, ratePerSecond: number | undefined) {
  let pausedUntilMs = Number.NEGATIVE_INFINITY;
  let lastError: OutletHealth['lastError'] = null;
  let failingSince: OutletHealth['failingSince'] = null;
  const turns = createTurns(clock, ratePerSecond === undefined ? 0 : 1000 / ratePerSecond);
  const pausedForMs = () => Math.max(0, pausedUntilMs - clock.monotonicMs());
  const sparedForMs = () => Math.max(breaker.retryAfterMs(), pausedForMs());
  const statusNow = (): OutletHealth['status'] => {
    if (breaker.state() !== 'closed') return 'failing';
    return pausedForMs() > 0 ? 'paused' : 'available';
  };

  return {
    availableInMs: () => Math.max(sparedForMs(), turns.inMs()),
    async acquire(signal: AbortSignal): Promise<number> {
      if (sparedForMs() > 0) return sparedForMs();
      const turn = turns.take();
      if ('backInMs' in turn) return turn.backInMs;
      if (turn.turnInMs > 0) await sleep(turn.turnInMs, signal);
      if (signal.aborted) return PROBED_PAUSE_MS;
      // Others may have found out meanwhile that it fails.
      if (sparedForMs() > 0) return sparedForMs();
      return breaker.tryAcquire() ? 0 : PROBED_PAUSE_MS;
    },
    abandon: () => breaker.abandoned(),
    report(outcome: SendOutcome): void {
      if (outcome.outcome === 'failed' && outcome.retryAfterMs !== undefined) {
        pausedUntilMs = clock.monotonicMs() + outcome.retryAfterMs;
      }
      const said = signalOf(outcome);
      const told = withReason(outcome);
      const at = clock.now().toISOString();
      if ('reason' in told && said !== 'good') lastError = { ...shownReason(told.reason), at };
      if (said === 'good') failingSince = null;
      else if (said === 'bad') failingSince ??= at;
      if (said === 'good') breaker.succeeded();
      else if (said === 'bad') breaker.failed();
      else breaker.abandoned();
    },
    health() {
      const sparedMs = sparedForMs();
      const nextTryAt = sparedMs > 0 ? new Date(clock.now().getTime() + sparedMs).toISOString() : null;
      return { status: statusNow(), lastError, failingSince, nextTryAt };
    },
  };
}

/** A route has providers of the message's channel alone. */
function sendBy(provider: AnyProvider, message: OutgoingMessage, signal: AbortSignal): Promise<SendOutcome> {
  if (provider.channel === 'email' && message.channel === 'email') return provider.send(message, signal);
  if (provider.channel === 'sms' && message.channel === 'sms') return provider.send(message, signal);
  if (provider.channel === 'push' && message.channel === 'push') return provider.send(message, signal);
  throw new Error(`${provider.name} takes no message of the channel ${message.channel}`);
}
