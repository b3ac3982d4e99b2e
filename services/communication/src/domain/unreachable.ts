import type { Clock } from '@rollcall/platform/clock.ts';
import { type DeviceStore, possibleTargets } from './devices.ts';
import type { Suppressions } from './messages.ts';
import type { Suppression } from './ports.ts';
import {
  type SuppressedChannel,
  type SuppressionReason,
  type SuppressionStore,
  scopeOfReason,
} from './suppressions.ts';

/**
 * A provider that names no time may have answered a while ago, and a device have been registered
 * meanwhile.
 */
const ANSWER_AGE_MS = 60_000;

export interface UnreachableDeps {
  readonly suppressions: SuppressionStore;
  readonly devices: DeviceStore;
  readonly clock: Clock;
}

/** Whom messages do not reach, or must not: people by their addresses, devices by their tokens. */
export function createUnreachable({ suppressions, devices, clock }: UnreachableDeps): Suppressions {
  return {
    async reasonFor({ subject, channel, recipient, category }) {
      if (channel !== 'push') return suppressions.reasonFor({ subject, channel, recipient }, category);
      const device = await devices.find(subject, possibleTargets(recipient));
      return device?.isGone === true ? 'device-gone' : undefined;
    },
    async optIn({ subject, channel, recipient, saidAt }) {
      if (channel === 'push') return;
      const reason = reasonOf('opted-out', channel);
      await suppressions.remove({ subject, channel, recipient }, { reason, before: saidAt });
    },
    async suppress({ subject, channel, recipient, messageId, kind, since }) {
      if (channel !== 'push') {
        const reason = reasonOf(kind, channel);
        await suppressions.add({ subject, channel, recipient, reason, scope: scopeOfReason[reason], messageId });
        return;
      }
      const goneAt = since ?? new Date(clock.now().getTime() - ANSWER_AGE_MS);
      for (const target of possibleTargets(recipient)) await devices.forget(subject, target, goneAt);
    },
  };
}

function reasonOf(kind: Suppression['kind'], channel: SuppressedChannel): SuppressionReason {
  if (kind === 'complained') return 'complaint';
  if (kind !== 'opted-out') return 'hard-bounce';
  return channel === 'sms' ? 'stop' : 'unsubscribe';
}
