import type { Clock } from '@rollcall/platform/clock.ts';
import { type Breaker, createBreaker } from '@rollcall/platform/outbound/breaker.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { Ways } from '../domain/acceptance.ts';
import { type Way } from '../domain/delivery.ts';
import { type RouteEntry, routeFor } from '../domain/dispatch.ts';
import { type Channel, channels, type Envelope } from '../domain/messages.ts';
import {
  causesOfMessage,
  type NotificationReading,
  type OutgoingMessage,
  type ProviderNotification,
  type ProviderReport,
  type SendOutcome,
} from '../domain/ports.ts';
import {
  type Quota,
  type QuotaState,
  type QuotaStore,
  type QuotaUses,
  quotaStates,
  usedUpForMs,
} from '../domain/quotas.ts';
import { type ShownReason, shownReason, withReason } from '../domain/reasons.ts';
import { pushPlatforms } from '../domain/recipients.ts';
import { type AnyProvider, createProvider, type ProviderDeps } from './create-provider.ts';
import type { ProviderSettings } from './provider-settings.ts';
import type { ProvidersConfig } from './providers-file.ts';
import { createQuotaGate, isUnused, type QuotaGate } from './quota-gate.ts';

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
  /** `paused`: it asked for it. `failing`: it is tried now and then. `used-up`: its quota is. */
  readonly status: 'available' | 'paused' | 'failing' | 'used-up';
  /** The last call that says that it fails. */
  readonly lastError: (ShownReason & { readonly at: string }) | null;
  /** Since when none has said that it works. */
  readonly failingSince: string | null;
  /** While it is left alone. */
  readonly nextTryAt: string | null;
  /** Of all replicas. */
  readonly quotas: readonly {
    readonly per: QuotaState['per'];
    readonly limit: number;
    readonly used: number;
    readonly resetsAt: string;
  }[];
}

/** A provider with what keeps it from being called too often. */
interface Outlet extends Way {
  readonly channel: Channel;
  /** Undefined: it sends none. */
  readNotification(notification: ProviderNotification): Promise<NotificationReading | undefined>;
  /** @param uses undefined: it has no quota. */
  health(uses: QuotaUses | undefined): OutletHealth;
}

interface OutletsDeps extends ProviderDeps {
  readonly quotas: QuotaStore;
}

/** All providers of one replica. */
export interface Outlets {
  readonly ways: Ways;
  /** Those that can take a message, in the order of the file. */
  routeOf(channel: Channel, envelope: Envelope): readonly RouteEntry[];
  find(name: string): Outlet | undefined;
  /** @throws Error where there are quotas, and no database. */
  health(): Promise<readonly OutletHealth[]>;
  /** Those that have one, by the names of their providers. */
  readonly quotas: ReadonlyMap<string, Quota>;
  /** Begins to hand on what providers say over connections of their own. @param keep see {@link MessageProvider}. */
  onReports(keep: (provider: string, reports: readonly ProviderReport[]) => Promise<void>): void;
  close(): Promise<void>;
}

export async function createOutlets(config: ProvidersConfig, deps: OutletsDeps): Promise<Outlets> {
  const made = await Promise.all(
    channels.flatMap((channel) =>
      config[channel].providers.map(async (settings) => ({
        settings,
        outlet: createOutlet(await createProvider(settings, deps), { ...deps, settings, channel }),
      })),
    ),
  );
  const byName = new Map(made.map((each) => [each.settings.name, each]));
  const quotas = new Map(
    made.flatMap(({ settings }) => {
      const quota = quotaOf(settings);
      return quota.perHour === undefined && quota.perDay === undefined ? [] : [[settings.name, quota] as const];
    }),
  );
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
    quotas,
    async health() {
      const uses = quotas.size === 0 ? new Map<string, QuotaUses>() : await deps.quotas.usesOf([...quotas.keys()]);
      return made.map(({ outlet }) => outlet.health(uses.get(outlet.name)));
    },
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
  readonly quotas: QuotaStore;
}

function createOutlet(provider: AnyProvider, { settings, channel, clock, quotas }: OutletOptions): OwnOutlet {
  const { name, kind, priority, weight, timeoutSeconds } = settings;
  const breaker = createBreaker(clock, BREAKER);
  const gate = createGate(clock, breaker, settings.ratePerSecond);
  const callMs = CALL_TIMEOUTS * timeoutSeconds * 1000;
  const quota = createQuotaGate({ provider: name, quota: quotaOf(settings), quotas, clock, callMs });
  return {
    name,
    channel,
    idempotentForMs: provider.idempotentForMs,
    callMs,
    availableInMs: () => Math.max(gate.availableInMs(), quota.usedUpForMs()),
    async acquire(signal) {
      if (quota.usedUpForMs() > 0) return quota.usedUpForMs();
      const inMs = await gate.acquire(signal);
      return inMs > 0 ? inMs : withinQuota(gate, quota);
    },
    async abandon() {
      await gate.abandon();
      await quota.giveBack();
    },
    async send(message, signal) {
      const outcome = await sendBy(provider, message, signal);
      // A browser's push service is an address that a caller has named: it says nothing of others.
      if (kind === 'webpush') breaker.abandoned();
      else gate.report(outcome);
      if (isUnused(outcome)) await quota.giveBack();
      return outcome;
    },
    readNotification: async (notification) => provider.readNotification?.(notification),
    onReports: (keep) => provider.onReports?.(keep),
    health(uses) {
      const states = uses === undefined ? [] : quotaStates(quotaOf(settings), uses);
      return {
        name,
        kind,
        channel,
        priority,
        weight,
        ...gate.health(usedUpForMs(states)),
        ...shownQuotas(clock, states),
      };
    },
    close: () => provider.close(),
  };
}

/** Who has a turn of a provider takes a part of its quota as well, or neither, and another provider may be next. */
async function withinQuota(gate: Pick<Way, 'abandon'>, quota: QuotaGate): Promise<number> {
  let isTaken = false;
  try {
    isTaken = await quota.take();
    return isTaken ? 0 : CHOOSE_AGAIN_MS;
  } finally {
    if (!isTaken) await gate.abandon();
  }
}

function quotaOf({ quotaPerHour, quotaPerDay }: ProviderSettings): Quota {
  return { perHour: quotaPerHour, perDay: quotaPerDay };
}

function shownQuotas(clock: Clock, states: readonly QuotaState[]): Pick<OutletHealth, 'quotas'> {
  const at = (inMs: number) => new Date(clock.now().getTime() + inMs).toISOString();
  return { quotas: states.map(({ endsInMs, ...state }) => ({ ...state, resetsAt: at(endsInMs) })) };
}

/** What an outcome says of the provider itself. */
export function signalOf(outcome: SendOutcome): 'good' | 'bad' | 'none' {
  switch (outcome.outcome) {
    case 'accepted':
      return 'good';
    case 'refused':
      return causesOfMessage.has(outcome.cause) ? 'good' : 'bad';
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
/** Where the quota turned out to be used up. */
const CHOOSE_AGAIN_MS = 1;

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
  const statusNow = (usedUpMs: number): OutletHealth['status'] => {
    if (breaker.state() !== 'closed') return 'failing';
    if (usedUpMs > 0) return 'used-up';
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
    abandon: async () => breaker.abandoned(),
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
    health(usedUpMs: number) {
      const sparedMs = Math.max(sparedForMs(), usedUpMs);
      const nextTryAt = sparedMs > 0 ? new Date(clock.now().getTime() + sparedMs).toISOString() : null;
      return { status: statusNow(usedUpMs), lastError, failingSince, nextTryAt };
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
