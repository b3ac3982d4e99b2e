import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Lease } from '@rollcall/platform/kube/builtin-kinds.ts';
import { pick, pickMetadata, withoutLastApplied } from '../runtime/object-fields.ts';

/**
 * What the operator keeps of a registration: of what a service reports of itself, which may be
 * large, its health and version.
 */
export function trimRegistration(registration: ServiceRegistration): ServiceRegistration {
  const { metadata, status } = registration;
  const trimmed = { ...registration, metadata: withoutLastApplied(metadata) };
  if (status === undefined) return trimmed;
  const { health, lifecycle: _, ...kept } = status;
  return { ...trimmed, status: health === undefined ? kept : { ...kept, health: trimHealth(health) } };
}

type Health = NonNullable<NonNullable<ServiceRegistration['status']>['health']>;

function trimHealth({ status, reportedAt, details }: Health): Health {
  const version = details?.['version'];
  return { status, reportedAt, ...(typeof version === 'string' ? { details: { version } } : {}) };
}

/** What the operator keeps of a Lease: whose it is and when it was renewed for how long. */
export function trimLease(lease: Lease): Lease {
  const { apiVersion, kind, metadata } = lease;
  return {
    apiVersion,
    kind,
    metadata: pickMetadata(metadata, 'annotations', 'ownerReferences'),
    ...pick(lease, 'spec'),
  };
}
