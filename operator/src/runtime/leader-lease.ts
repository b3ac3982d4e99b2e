import type { OwnerReference } from '@rollcall/crds/object-meta.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Lease } from '@rollcall/platform/kube/builtin-kinds.ts';
import { isAlreadyExists, isConflict, isNotFound } from '@rollcall/platform/kube/errors.ts';
import { microTime } from '@rollcall/platform/kube/micro-time.ts';
import type { Manifest, ResourceClient } from '@rollcall/platform/kube/resource-client.ts';

export interface LeaderLeaseDeps {
  readonly leases: ResourceClient<Lease>;
  readonly name: string;
  readonly identity: string;
  readonly durationMs: number;
  /**
   * The owner of a Lease that this process makes or acquires from another pod; undefined: none, so
   * it stays. Made anew while everything is being uninstalled, nobody else would remove it.
   */
  readonly owner: OwnerReference | undefined;
  readonly clock: Clock;
}

/** One candidate's view of the Lease that all compete for. */
export function createLeaderLease(deps: LeaderLeaseDeps) {
  const { leases, name, identity, durationMs, owner, clock } = deps;
  let observed: Lease | undefined;
  let observedAtMs = 0;

  function see(lease: Lease): void {
    if (lease.metadata.resourceVersion === observed?.metadata.resourceVersion) return;
    observed = lease;
    observedAtMs = clock.monotonicMs();
  }

  function isFree({ spec }: Lease): boolean {
    const holder = spec?.holderIdentity ?? '';
    return holder === '' || clock.monotonicMs() >= observedAtMs + (spec?.leaseDurationSeconds ?? 0) * 1000;
  }

  function nextSpec(held: Lease | undefined): NonNullable<Lease['spec']> {
    const at = microTime(clock.now());
    const ours = held?.spec?.holderIdentity === identity;
    const transitions = held === undefined ? 0 : (held.spec?.leaseTransitions ?? 0) + 1;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(durationMs / 1000),
      renewTime: at,
      ...(ours ? {} : { acquireTime: at, leaseTransitions: transitions }),
    };
  }

  /**
   * One that the pod which led before had made would go with that, under its new leader. The
   * chart's own has no owner, and gets none.
   */
  function nextMetadata({ metadata: { ownerReferences = [] } }: Lease): Pick<Lease['metadata'], 'ownerReferences'> {
    const isOfAnother = ownerReferences.some(({ kind, uid }) => kind === 'Pod' && uid !== owner?.uid);
    return isOfAnother ? { ownerReferences: ownersOf(owner) } : {};
  }

  function patch(current: Lease, change: Pick<Lease, 'spec'> & { readonly metadata?: object }): Promise<Lease> {
    const { resourceVersion = '' } = current.metadata;
    return leases.patch(name, change, { resourceVersion });
  }

  async function write(): Promise<boolean> {
    const ours = observed?.spec?.holderIdentity === identity;
    const current = ours ? observed : await leases.find(name);
    if (current === undefined) {
      const manifest: Manifest<Lease> = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: {
          name,
          namespace: leases.namespace,
          ownerReferences: ownersOf(owner),
        },
        spec: nextSpec(undefined),
      };
      see(await leases.create(manifest));
      return true;
    }
    see(current);
    if (!ours && current.spec?.holderIdentity !== identity && !isFree(current)) return false;
    see(await patch(current, { metadata: nextMetadata(current), spec: nextSpec(current) }));
    return true;
  }

  return {
    /**
     * Renews the Lease where it is ours and acquires it where it is free. It is free when nobody
     * holds it, and when it has not changed for as long as it says, timed from when this process saw
     * its last change: no two clocks are compared.
     *
     * @returns whether it is ours.
     * @throws as the API server's client; then that is unknown.
     */
    async acquireOrRenew(): Promise<boolean> {
      try {
        return await write();
      } catch (error) {
        // Deleted by somebody: made anew with the next try.
        if (isNotFound(error)) observed = undefined;
        if (!isConflict(error) && !isAlreadyExists(error)) throw error;
        const winner = await leases.find(name);
        if (winner !== undefined) see(winner);
        // Ours after all: an earlier write had effect although its answer did not come.
        return winner?.spec?.holderIdentity === identity ? write() : false;
      }
    },
    /** Leaves it without a holder, so that another acquires it with its next read. */
    async release(): Promise<void> {
      if (observed?.spec?.holderIdentity !== identity) return;
      const spec = { holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(clock.now()) };
      observed = await patch(observed, { spec });
    },
    /** As last seen; undefined before the first answer. */
    observed: (): Lease | undefined => observed,
  };
}

function ownersOf(owner: OwnerReference | undefined): OwnerReference[] {
  return owner === undefined ? [] : [owner];
}
