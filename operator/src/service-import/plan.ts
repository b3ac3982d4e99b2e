import { annotations, apiVersion, objectNameFor, serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Change, Decision } from '../runtime/decision.ts';
import { type Desired, type DesiredSpec, importedFrom } from './desired.ts';

/** How soon a name that is used is checked again. */
const NAME_TAKEN_RETRY_MS = 60_000;

/** All that a decision about one Service rests on. */
export interface ImportSnapshot {
  /** `namespace/name` of the Service. */
  readonly serviceKey: string;
  /** Undefined when it is gone. */
  readonly service: Service | undefined;
  readonly desired: Desired;
  /** Whether any endpoint is ready. */
  readonly ready: boolean;
  /** The registrations that were made from this Service. */
  readonly imported: readonly ServiceRegistration[];
  /** A registration of the desired name, whoever made it: of several, one that is another's. */
  readonly holder: ServiceRegistration | undefined;
  /** Where registrations are made. */
  readonly namespace: string;
}

/** Makes the registrations of a Service be the one that it asks for. */
export function planImport(snapshot: ImportSnapshot): Decision {
  const { desired, service, imported } = snapshot;
  if (service === undefined) return { changes: imported.flatMap(planRemoval) };
  if (desired.wanted === 'nothing') {
    const warnings = desired.fault === undefined ? [] : [invalid(service, [desired.fault])];
    return { changes: [...imported.flatMap(planRemoval), ...warnings] };
  }
  if (desired.wanted === 'impossible') {
    return { changes: [invalid(service, desired.faults)] };
  }
  const name = objectNameFor(desired.spec.serviceName);
  const others = imported.filter((registration) => registration.metadata.name !== name).flatMap(planRemoval);
  const { holder } = snapshot;
  if (holder === undefined) return { changes: [...others, planCreation(snapshot, desired.spec)] };
  if (importedFrom(holder) !== snapshot.serviceKey) {
    const by = importedFrom(holder) ?? holder.spec.source;
    const message = `Not registered: the name ${desired.spec.serviceName} is held by another registration (${by})`;
    return { changes: [...others, warn(service, 'NameTaken', message)], requeueAfterMs: NAME_TAKEN_RETRY_MS };
  }
  return { changes: [...others, ...planHeld(snapshot, holder, desired.spec)] };
}

/** What is left to do where the Service's own registration holds the name. */
function planHeld(snapshot: ImportSnapshot, holder: ServiceRegistration, spec: DesiredSpec): Change[] {
  // It is being deleted, and its deletion enqueues again.
  if (holder.metadata.deletionTimestamp !== undefined) return [];
  if (holder.status?.phase === 'Expired') {
    return snapshot.ready ? [...planRemoval(holder), planCreation(snapshot, spec)] : [];
  }
  const same = holder.spec.url === spec.url && holder.spec.capabilities.join() === spec.capabilities.join();
  if (same) return [];
  const patch = { spec: { url: spec.url, capabilities: spec.capabilities } };
  return [{ action: 'patch', kind: serviceRegistrationKind, object: holder, patch }];
}

function planRemoval(registration: ServiceRegistration): Change[] {
  if (registration.metadata.deletionTimestamp !== undefined) return [];
  return [{ action: 'delete', kind: serviceRegistrationKind, object: registration }];
}

function planCreation({ serviceKey, namespace }: ImportSnapshot, spec: DesiredSpec): Change {
  return {
    action: 'create',
    kind: serviceRegistrationKind,
    manifest: {
      apiVersion,
      kind: serviceRegistrationKind.kind,
      metadata: {
        name: objectNameFor(spec.serviceName),
        namespace,
        annotations: { [annotations.importedFrom]: serviceKey },
      },
      spec,
    },
  };
}

function invalid(regarding: Service, faults: readonly string[]): Change {
  return warn(regarding, 'InvalidRegistration', `Not registered: ${faults.join('; ')}`);
}

function warn(regarding: Service, reason: string, message: string): Change {
  return { action: 'event', regarding, type: 'Warning', reason, message };
}
