import type { Clock } from '@rollcall/platform/clock.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';

type Watched = Pick<Informer<KubeObject>, 'connectivity' | 'onConnectivity'>;

/**
 * Whether this process sees what happens. While it is blind, silence of a service proves nothing.
 */
export interface Connectivity {
  /** Since when (monotonic, ms) nothing was missed; undefined while blind. */
  sinceMs(): number | undefined;
}

/**
 * When the grace is over: for one TTL after this process sees again, nothing expires, because
 * whoever lives has been heard by then.
 *
 * @param connectedSinceMs monotonic, as is what is returned.
 */
export function graceEndMs(connectedSinceMs: number, ttlMs: number): number {
  return connectedSinceMs + ttlMs;
}

/**
 * Sees while all informers are connected; they notice a server that hangs by themselves. That this
 * process was suspended goes unnoticed: what it then does on an old view fails on its
 * preconditions. Must be made before they are started.
 */
export function informerConnectivity(informers: readonly Watched[], clock: Clock): Connectivity {
  let sinceMs: number | undefined;
  const update = () => {
    const connected = informers.every((informer) => informer.connectivity() === 'connected');
    sinceMs = connected ? (sinceMs ?? clock.monotonicMs()) : undefined;
  };
  for (const informer of informers) informer.onConnectivity(update);
  update();
  return { sinceMs: () => sinceMs };
}
