import {
  annotations,
  apiVersion,
  isLabelValue,
  labels,
  objectNameFor,
  serviceRegistrationKind,
} from '@rollcall/crds/kinds.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Change, Decision } from '../runtime/decision.ts';
import { type Desired, type DesiredSpec, importedFrom } from './desired.ts';
import type { WantedRegistration } from './endpoints.ts';

/** How soon a name that is used is checked again. */
const NAME_TAKEN_RETRY_MS = 60_000;
/** What has come meanwhile, such as an endpoint that is gone, does not wait for a thousand writes. */
const MOST_CHANGES = 50;

/** All that a decision about one Service rests on. */
export interface ImportSnapshot {
  /** `namespace/name` of the Service. */
  readonly serviceKey: string;
  /** Undefined when it is gone. */
  readonly service: Service | undefined;
  readonly desired: Desired;
  /** Undefined while the endpoints are not known. */
  readonly wanted: readonly WantedRegistration[] | undefined;
  /** The registrations that were made from this Service. */
  readonly imported: readonly ServiceRegistration[];
  /** Those of the desired name that were not. */
  readonly others: readonly ServiceRegistration[];
  /** Where registrations are made. */
  readonly namespace: string;
}

/** Makes the registrations of a Service be those that it asks for. */
export function planImport(snapshot: ImportSnapshot): Decision {
  const { desired, service, imported } = snapshot;
  if (service === undefined) return atMost(imported.flatMap(planRemoval));
  if (desired.wanted === 'nothing') {
    const warnings = desired.fault === undefined ? [] : [invalid(service, [desired.fault])];
    return atMost([...imported.flatMap(planRemoval), ...warnings]);
  }
  if (desired.wanted === 'impossible') return { changes: [invalid(service, desired.faults)] };
  const { serviceName } = desired.spec;
  const renamed = imported.filter(({ spec }) => spec.serviceName !== serviceName).flatMap(planRemoval);
  const own = imported.filter(({ spec }) => spec.serviceName === serviceName);
  const holder = holderOf(snapshot.others, own);
  if (holder === undefined) return atMost([...renamed, ...planOwn(snapshot, own)]);
  const by = importedFrom(holder) ?? holder.spec.source;
  const message = `Not registered: the name ${serviceName} is held by another registration (${by})`;
  const changes = [...renamed, ...own.flatMap(planRemoval), warn(service, 'NameTaken', message)];
  return { requeueAfterMs: NAME_TAKEN_RETRY_MS, ...atMost(changes) };
}

function atMost(changes: readonly Change[]): Decision {
  return changes.length <= MOST_CHANGES ? { changes } : { changes: changes.slice(0, MOST_CHANGES), requeueAfterMs: 0 };
}

/** A name belongs to who has it, and of two who took it at once to the first. */
function holderOf(
  others: readonly ServiceRegistration[],
  own: readonly ServiceRegistration[],
): ServiceRegistration | undefined {
  const [other, first] = [firstOf(others), firstOf(own.filter(isAlive))];
  return other === undefined || first === undefined || isBefore(other, first) ? other : undefined;
}

function firstOf(registrations: readonly ServiceRegistration[]): ServiceRegistration | undefined {
  let first: ServiceRegistration | undefined;
  for (const each of registrations) if (first === undefined || isBefore(each, first)) first = each;
  return first;
}

/** Whether it was created first; of the same second, an import gives way to all but other imports. */
function isBefore(a: ServiceRegistration, b: ServiceRegistration): boolean {
  const [at = '', otherAt = ''] = [a, b].map(({ metadata }) => metadata.creationTimestamp);
  if (at !== otherAt) return at < otherAt;
  const [isImport, isOtherImport] = [a, b].map(({ spec }) => spec.source === 'KubernetesService');
  if (isImport !== isOtherImport) return isOtherImport === true;
  return (a.metadata.uid ?? '') < (b.metadata.uid ?? '');
}

/** What there is to do where nobody else has the name. */
function planOwn(snapshot: ImportSnapshot, own: readonly ServiceRegistration[]): Change[] {
  const { wanted } = snapshot;
  if (wanted === undefined) return [];
  const known = new Map(own.map((registration) => [registration.metadata.name, registration]));
  const names = new Set(wanted.map(({ spec }) => nameOf(spec)));
  const patches = wanted.flatMap(({ spec }) => planPatch(known.get(nameOf(spec)), spec));
  const creations = planCreations(snapshot, own);
  const remaining = own.filter((each) => names.has(each.metadata.name) && isAlive(each));
  const isHeld = remaining.length > 0 || creations.length > 0;
  const removals = own
    .filter((each) => !names.has(each.metadata.name) && (isHeld || !outlives(each)))
    .flatMap(planRemoval);
  // Creations may be refused, which keeps nothing that is gone; yet the name goes on without a gap.
  return remaining.length > 0 ? [...patches, ...removals, ...creations] : [...patches, ...creations, ...removals];
}

/** The Service's own registration holds the name until an endpoint is registered in its place. */
function outlives(registration: ServiceRegistration): boolean {
  return registration.spec.instanceId === undefined && isAlive(registration);
}

function isAlive({ metadata, status }: ServiceRegistration): boolean {
  return metadata.deletionTimestamp === undefined && status?.phase !== 'Expired';
}

function planPatch(known: ServiceRegistration | undefined, { url, capabilities, zone }: DesiredSpec): Change[] {
  if (known === undefined || !isAlive(known)) return [];
  const { spec } = known;
  if (spec.url === url && spec.capabilities.join() === capabilities.join() && spec.zone === zone) return [];
  const patch = { spec: { url, capabilities, ...(spec.zone === zone ? {} : { zone: zone ?? null }) } };
  return [{ action: 'patch', kind: serviceRegistrationKind, object: known, patch }];
}

/** The first instance of a name is made alone: the others are made with its id. */
function planCreations(snapshot: ImportSnapshot, own: readonly ServiceRegistration[]): Change[] {
  const known = new Map(own.map((registration) => [registration.metadata.name, registration]));
  const serviceId = serviceIdOf(own);
  const creations = (snapshot.wanted ?? []).flatMap(({ spec, ready }) => {
    const before = known.get(nameOf(spec));
    const isDue = before === undefined ? ready || spec.instanceId === undefined : ready && isExpired(before);
    if (!isDue) return [];
    const creation = planCreation(snapshot, serviceId === undefined ? spec : { ...spec, serviceId });
    return [[...(before === undefined ? [] : planRemoval(before)), creation]];
  });
  return (serviceId === undefined ? creations.slice(0, 1) : creations).flat();
}

/** One that is being deleted is waited for: its deletion enqueues again. */
function isExpired({ metadata, status }: ServiceRegistration): boolean {
  return metadata.deletionTimestamp === undefined && status?.phase === 'Expired';
}

/** Of the name, which stays while any instance lives; undefined where none does. */
function serviceIdOf(own: readonly ServiceRegistration[]): string | undefined {
  const first = firstOf(own.filter(isAlive));
  return first?.spec.serviceId ?? first?.metadata.uid;
}

function nameOf({ serviceName, instanceId }: DesiredSpec): string {
  return objectNameFor(serviceName, instanceId);
}

function planRemoval(registration: ServiceRegistration): Change[] {
  if (registration.metadata.deletionTimestamp !== undefined) return [];
  return [{ action: 'delete', kind: serviceRegistrationKind, object: registration }];
}

function planCreation({ serviceKey, namespace }: ImportSnapshot, spec: DesiredSpec): Change {
  const { serviceName } = spec;
  return {
    action: 'create',
    kind: serviceRegistrationKind,
    manifest: {
      apiVersion,
      kind: serviceRegistrationKind.kind,
      metadata: {
        name: nameOf(spec),
        namespace,
        ...(isLabelValue(serviceName) ? { labels: { [labels.service]: serviceName } } : {}),
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
