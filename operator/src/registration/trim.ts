import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Lease } from '@rollcall/platform/kube/builtin-kinds.ts';

/** `kubectl apply` keeps a copy of the whole object in it. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * What the operator keeps of a registration: of what a service reports of itself, which may be
 * large, its health and version.
 */
export function trimRegistration(registration: ServiceRegistration): ServiceRegistration {
  const { metadata, status } = registration;
  const { [LAST_APPLIED]: _, ...annotations } = metadata.annotations ?? {};
  const { health, lifecycle: _lifecycle, ...kept } = status ?? {};
  return {
    ...registration,
    metadata: { ...metadata, annotations },
    ...(status === undefined
      ? {}
      : { status: { ...kept, ...(health === undefined ? {} : { health: trimHealth(health) }) } }),
  };
}

type Health = NonNullable<NonNullable<ServiceRegistration['status']>['health']>;

function trimHealth({ status, reportedAt, details }: Health): Health {
  const version = details?.['version'];
  return { status, reportedAt, ...(typeof version === 'string' ? { details: { version } } : {}) };
}

/** What the operator keeps of a Lease: whose it is and when it was renewed for how long. */
export function trimLease({ apiVersion, kind, metadata, spec }: Lease): Lease {
  const { name, namespace, uid, resourceVersion, annotations, ownerReferences } = metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(annotations === undefined ? {} : { annotations }),
      ...(ownerReferences === undefined ? {} : { ownerReferences }),
    },
    ...(spec === undefined ? {} : { spec }),
  };
}
