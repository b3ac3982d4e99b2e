import { heartbeatOf } from '@rollcall/crds/heartbeat-lease.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Lease } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import type { RegistrationView } from '../job/snapshot.ts';

/** Copies of what the registry keeps. */
export interface RegistrationCopies {
  readonly registrations: Pick<Informer<ServiceRegistration>, 'store'>;
  readonly leases: Pick<Informer<Lease>, 'store'>;
  /** Where both are. */
  readonly namespace: string;
}

const nothing: RegistrationView = { heartbeatAt: undefined, currentVersion: undefined, health: undefined };

/** What the registry knows of a service. @param name of the objects that stand for it. */
export function observeRegistration(
  { registrations, leases, namespace }: RegistrationCopies,
  name: string,
  serviceName: string,
): RegistrationView {
  const registration = registrations.store.get(`${namespace}/${name}`);
  if (registration?.spec.serviceName !== serviceName || registration.status?.phase === 'Expired') return nothing;
  const { currentVersion, health } = registration.status ?? {};
  const version = health?.details?.['version'];
  return {
    heartbeatAt: heartbeatAt(registration, leases.store.get(`${namespace}/${name}`)),
    currentVersion,
    health:
      health === undefined
        ? undefined
        : {
            status: health.status,
            reportedAt: new Date(health.reportedAt),
            version: typeof version === 'string' ? version : undefined,
          },
  };
}

/** A Lease of another owner is that of a registration of the same name that is gone. */
function heartbeatAt({ metadata }: ServiceRegistration, lease: Lease | undefined): Date | undefined {
  if (lease === undefined) return undefined;
  const { ownerUid, renewTime } = heartbeatOf(lease);
  const isOwn = ownerUid === undefined || ownerUid === metadata.uid;
  return isOwn && renewTime !== undefined ? new Date(renewTime) : undefined;
}
