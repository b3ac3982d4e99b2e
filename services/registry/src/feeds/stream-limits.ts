import { RegistryError } from '../common/errors.ts';

/** Who opens a stream. */
export interface StreamCaller {
  /** Streams are counted by it. */
  readonly name: string;
  /** It comes by a gateway, and not as itself. */
  readonly isForwarded: boolean;
}

/** Limits how many streams of one kind a replica has open. */
export interface StreamLimits {
  /**
   * @returns releases the stream; calling it again does nothing.
   * @throws RegistryError STREAM_SHARE_TAKEN; TOO_MANY_STREAMS to a direct caller where all streams
   * are in use.
   */
  acquire(caller: StreamCaller): () => void;
  /** How many are open. */
  readonly size: number;
}

const STREAMS = 1000;
/**
 * Of them, for clients of gateways together: the gateways' own watches, and those of services, need
 * the others.
 */
const FORWARDED_STREAMS = 500;
const STREAMS_OF_CLIENT = 100;
/**
 * More: a service account is that of all pods of a Deployment, and often of several, such as all
 * replicas of the gateway.
 */
const STREAMS_OF_DIRECT_CALLER = 250;

/**
 * Shares them out so that no one caller has all, and clients of gateways together have half at
 * most.
 */
export function createStreamLimits(): StreamLimits {
  const direct = new Map<string, number>();
  const forwarded = new Map<string, number>();
  let size = 0;
  let forwardedSize = 0;

  function check({ name, isForwarded }: StreamCaller): void {
    const taken = (isForwarded ? forwarded : direct).get(name) ?? 0;
    const most = isForwarded ? STREAMS_OF_CLIENT : STREAMS_OF_DIRECT_CALLER;
    if (taken >= most) throw new RegistryError('STREAM_SHARE_TAKEN', `You have ${most} open streams at this replica`);
    // Not 503, by which a gateway knows that a replica is ill: it would send nobody's requests here
    // for a while.
    if (isForwarded && (forwardedSize >= FORWARDED_STREAMS || size >= STREAMS)) {
      const message = 'This replica has as many open streams as it can serve to clients of gateways';
      throw new RegistryError('STREAM_SHARE_TAKEN', message);
    }
    if (size >= STREAMS) throw new RegistryError('TOO_MANY_STREAMS', `This replica has ${STREAMS} open streams`);
  }

  function count({ name, isForwarded }: StreamCaller, change: 1 | -1): void {
    const counts = isForwarded ? forwarded : direct;
    const taken = (counts.get(name) ?? 0) + change;
    if (taken > 0) counts.set(name, taken);
    else counts.delete(name);
    size += change;
    if (isForwarded) forwardedSize += change;
  }

  return {
    acquire(caller) {
      check(caller);
      count(caller, 1);
      let isTaken = true;
      return () => {
        if (isTaken) count(caller, -1);
        isTaken = false;
      };
    },
    get size() {
      return size;
    },
  };
}
