import type { Followed } from '../../feeds/catch-up.ts';
import { createEventLog } from '../../feeds/event-log.ts';
import type { Registration } from './registration.ts';
import { isDiscoverable } from './registrations.ts';

/** What subscribers of the registry are sent. Heartbeats are no events. */
type FeedEventType = 'added' | 'modified' | 'expired' | 'removed';

export interface FeedEvent {
  /** The store's version of the change: it grows, and is the same on every replica. */
  readonly version: number;
  readonly type: FeedEventType;
  readonly registration: Registration;
}

/**
 * A change of a registration as the store's watch brought it, in the order of the store's versions.
 */
interface RegistrationChange {
  readonly version: number;
  readonly registration: Registration;
  readonly deleted: boolean;
}

/** The recent events, for subscribers that come back, and the live ones. */
export interface Feed extends Followed {
  apply(change: RegistrationChange): void;
  /** Nothing else happened up to `version`. */
  reach(version: number): void;
  /**
   * A complete list of the store: whatever differs from what was sent becomes events of that
   * version.
   */
  replace(registrations: readonly Registration[], version: number): void;
  /**
   * The events after `version`, or undefined when they are no longer (or were never) known here:
   * the subscriber then has to begin with {@link snapshot}.
   */
  since(version: number): readonly FeedEvent[] | undefined;
  /** Every discoverable registration, as `added` events. */
  snapshot(): readonly FeedEvent[];
  /**
   * The version that {@link snapshot} is of: that of the last change or list, which other replicas
   * reach soonest.
   */
  readonly version: number;
  /** @returns a function that ends the subscription. */
  subscribe(listener: (event: FeedEvent) => void): () => void;
}

interface ObservedState {
  readonly registration: Registration;
  readonly present: boolean;
  /** What to say when it is not present and was. */
  readonly type: 'expired' | 'removed';
}

/** @param capacity how many past events are kept. */
export function createFeed(capacity: number): Feed {
  const published = new Map<string, Registration>();
  const log = createEventLog<FeedEvent>(capacity);
  let version = 0;

  const publish = (type: FeedEventType, registration: Registration, at: number): void =>
    log.append({ version: at, type, registration });

  function take(state: ObservedState, at: number): void {
    const { registration, present } = state;
    const known = published.get(registration.serviceName);
    if (present) {
      published.set(registration.serviceName, registration);
      if (known === undefined) publish('added', registration, at);
      else if (known.id !== registration.id || !sameToSubscribers(known, registration))
        publish('modified', registration, at);
    } else if (known?.id === registration.id) {
      published.delete(registration.serviceName);
      publish(state.type, registration, at);
    }
  }

  function apply({ version: at, registration, deleted }: RegistrationChange): void {
    if (at <= version) return;
    version = at;
    const present = !deleted && isDiscoverable(registration);
    take({ registration, present, type: deleted ? 'removed' : 'expired' }, at);
    log.reach(at);
  }

  return {
    apply,
    reach: (at) => log.reach(at),
    replace(registrations, at) {
      const first = version === 0;
      const listed = new Map(registrations.map((registration) => [registration.serviceName, registration]));
      // These events carry the version from before the list: a subscriber that gets only some of
      // them and resumes from there is sent everything anew.
      for (const known of published.values()) {
        if (!listed.has(known.serviceName)) take({ registration: known, present: false, type: 'removed' }, version);
      }
      for (const registration of registrations) {
        if (first && isDiscoverable(registration)) published.set(registration.serviceName, registration);
        else if (!first) take({ registration, present: isDiscoverable(registration), type: 'expired' }, version);
      }
      log.restart(at);
      version = Math.max(version, at);
      log.reach(version);
    },
    get reached() {
      return log.reached;
    },
    whenReached: (at, signal) => log.whenReached(at, signal),
    since: (from) => log.since(from),
    snapshot: () => [...published.values()].map((registration) => ({ version, type: 'added', registration })),
    get version() {
      return version;
    },
    subscribe: (listener) => log.subscribe(listener),
  };
}

/** Status changes that subscribers cannot see make no events. */
function sameToSubscribers(a: Registration, b: Registration): boolean {
  return a.url === b.url && a.currentVersion === b.currentVersion && a.capabilities.join() === b.capabilities.join();
}
