import { randomBytes } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import { eventKind, type KubeEvent } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isNotFound } from '@rollcall/platform/kube/errors.ts';
import { type KubeObject, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { EventChange } from './decision.ts';
import { pick } from './object-fields.ts';
import { createSpamFilter, remember } from './spam-filter.ts';

/** Enough for every registration of a full registry to expire at once. */
const QUEUE_LIMIT = 20_000;
const PER_SECOND = 50;
/** While controllers have work waiting, its writes come first. */
const PER_SECOND_WHEN_BUSY = 5;
/** How long stopping waits for what is queued. */
const FLUSH_MS = 1000;
/** Leaves the suffix its part of a name of at most 253 characters. */
const NAME_LIMIT = 230;

/** Something that a user should know about an object. */
type Occurrence = Omit<EventChange, 'action'>;

export interface EventRecorderDeps {
  readonly connection: KubeConnection;
  readonly clock: Clock;
  readonly log: Logger;
  /** `source.component` and `source.host` of the Events. */
  readonly component: string;
  readonly host: string;
  readonly onDropped: () => void;
  /** Whether writes that matter more are waiting. */
  readonly isBusy?: () => boolean;
}

/**
 * Writes core/v1 Events as client-go's legacy recorder does: the same object, reason and message
 * again raise the count of the Event that is there; an object that causes too many loses the rest.
 * Sending is asynchronous and paced, from a bounded queue: an Event is for people, it never delays
 * or fails the work that caused it.
 */
export interface EventRecorder extends Actor {
  /** Returns at once; an Event that cannot be sent is dropped and counted. */
  record(occurrence: Occurrence): void;
  /** How many wait to be sent. */
  pending(): number;
}

/** Holds no more of the object than the Event does: very many may wait. */
interface Pending extends Omit<Occurrence, 'regarding'> {
  readonly involvedObject: KubeEvent['involvedObject'];
  readonly at: Date;
}

interface Known {
  readonly name: string;
  readonly count: number;
}

export function createEventRecorder(deps: EventRecorderDeps): EventRecorder {
  const { clock, log, onDropped } = deps;
  const spam = createSpamFilter();
  const known = new Map<string, Known>();
  const queue: Pending[] = [];
  const stopping = new AbortController();
  let wake: (() => void) | undefined;
  let running: Promise<void> | undefined;
  let flushUntilMs = Number.POSITIVE_INFINITY;

  async function send(pending: Pending): Promise<void> {
    const { involvedObject } = pending;
    const client = resourceClient(deps.connection, eventKind, involvedObject.namespace ?? 'default');
    const key = [objectIdentity(involvedObject), pending.type, pending.reason, pending.message].join('\n');
    const earlier = known.get(key);
    if (earlier !== undefined) {
      const count = earlier.count + 1;
      try {
        await client.patch(earlier.name, { count, lastTimestamp: toSeconds(pending.at) });
        return remember(known, key, { name: earlier.name, count });
      } catch (error) {
        // The API server forgets Events after an hour.
        if (!isNotFound(error)) throw error;
      }
    }
    const event = buildEvent(pending, deps);
    await client.create(event);
    remember(known, key, { name: event.metadata.name, count: 1 });
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted || (queue.length > 0 && clock.monotonicMs() < flushUntilMs)) {
      const pending = queue.shift();
      if (pending === undefined) {
        await new Promise<void>((resolve) => void (wake = resolve));
        continue;
      }
      try {
        await send(pending);
      } catch (err) {
        onDropped();
        log.debug({ err, reason: pending.reason }, 'event not sent');
      }
      await sleep(1000 / (deps.isBusy?.() === true ? PER_SECOND_WHEN_BUSY : PER_SECOND), stopping.signal);
    }
    for (const _ of queue.splice(0)) onDropped();
  }

  return {
    name: 'event recorder',
    start: async () => void (running ??= run()),
    async stop() {
      flushUntilMs = clock.monotonicMs() + FLUSH_MS;
      stopping.abort();
      wake?.();
      await Promise.race([running, sleep(FLUSH_MS)]);
    },
    pending: () => queue.length,
    record({ regarding, type, reason, message }) {
      const involvedObject = referenceTo(regarding);
      const allowed = queue.length < QUEUE_LIMIT && spam.allow(objectIdentity(involvedObject), clock.monotonicMs());
      if (!allowed || stopping.signal.aborted) return onDropped();
      queue.push({ involvedObject, type, reason, message, at: clock.now() });
      wake?.();
    },
  };
}

function referenceTo({ apiVersion, kind, metadata }: KubeObject): KubeEvent['involvedObject'] {
  return { apiVersion, kind, name: metadata.name, ...pick(metadata, 'namespace', 'uid') };
}

function objectIdentity({ kind, namespace, name, uid }: KubeEvent['involvedObject']): string {
  return [kind, namespace, name, uid].join('/');
}

function buildEvent(pending: Pending, { component, host }: EventRecorderDeps): KubeEvent {
  const { involvedObject, reason, message, type } = pending;
  const at = toSeconds(pending.at);
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: eventName(involvedObject.name), namespace: involvedObject.namespace ?? 'default' },
    involvedObject,
    reason,
    message,
    type,
    source: { component, host },
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
  };
}

function eventName(objectName: string): string {
  return `${objectName.slice(0, NAME_LIMIT).replace(/[.-]+$/, '')}.${randomBytes(8).toString('hex')}`;
}

/** metav1.Time has no fractions of a second. */
function toSeconds(at: Date): string {
  return at.toISOString().replace(/\.\d+Z$/, 'Z');
}
