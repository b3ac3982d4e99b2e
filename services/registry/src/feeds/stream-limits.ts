import { createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
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
   * @throws RegistryError STREAM_SHARE_USED; TOO_MANY_STREAMS to a direct caller where all streams
   * are in use.
   */
  acquire(caller: StreamCaller): () => void;
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
  const all = createConcurrencyLimiter({ most: STREAMS });
  const direct = createConcurrencyLimiter({ mostPerKey: STREAMS_OF_DIRECT_CALLER });
  const forwarded = createConcurrencyLimiter({ most: FORWARDED_STREAMS, mostPerKey: STREAMS_OF_CLIENT });
  return {
    acquire({ name, isForwarded }) {
      const leaveShare = (isForwarded ? forwarded : direct).tryEnter(name);
      if (leaveShare === undefined) {
        const most = isForwarded ? STREAMS_OF_CLIENT : STREAMS_OF_DIRECT_CALLER;
        const message = `A caller like you may have ${most} open streams at this replica, all clients of gateways ${FORWARDED_STREAMS}`;
        throw new RegistryError('STREAM_SHARE_USED', message);
      }
      const leaveAll = all.tryEnter('');
      if (leaveAll === undefined) {
        leaveShare();
        // Not 503, by which a gateway knows that a replica is ill: it would send nobody's requests
        // here for a while.
        throw new RegistryError(isForwarded ? 'STREAM_SHARE_USED' : 'TOO_MANY_STREAMS');
      }
      let isTaken = true;
      return () => {
        if (!isTaken) return;
        isTaken = false;
        leaveShare();
        leaveAll();
      };
    },
  };
}
