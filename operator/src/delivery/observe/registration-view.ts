import { heartbeatOf } from '@rollcall/crds/heartbeat-lease.ts';
import { objectNameFor } from '@rollcall/crds/kinds.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Lease } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { objectKey } from '@rollcall/platform/kube/store.ts';
import type { ObjectIndex } from '../../runtime/object-index.ts';
import type { RegistrationView } from '../job/snapshot.ts';

/** Copies of what the registry keeps. */
export interface RegistrationCopies {
  /** By service name. */
  readonly registrations: Pick<ObjectIndex<ServiceRegistration>, 'get'>;
  readonly leases: Pick<Informer<Lease>, 'store'>;
}

/** What the registry knows of a service: of each of its instances that is not Expired. */
export function observeRegistrations(
  { registrations, leases }: RegistrationCopies,
  serviceName: string,
): readonly RegistrationView[] {
  return registrations
    .get(serviceName)
    .filter((registration) => isCanonical(registration) && registration.status?.phase !== 'Expired')
    .map((registration) => viewOf(registration, leases.store.get(objectKey(registration))));
}

/** Under another name it would be a second registration, which is not served. */
function isCanonical({ metadata, spec }: ServiceRegistration): boolean {
  return metadata.name === objectNameFor(spec.serviceName, spec.instanceId);
}

function viewOf(registration: ServiceRegistration, lease: Lease | undefined): RegistrationView {
  const { currentVersion, health } = registration.status ?? {};
  const version = health?.details?.['version'];
  return {
    heartbeatAt: heartbeatAt(registration, lease),
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
