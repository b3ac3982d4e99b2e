import { labels } from '@rollcall/crds/kinds.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import {
  type EndpointSlice,
  endpointSliceKind,
  type Service,
  serviceKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import type { Change, Decision, EventChange } from '../runtime/decision.ts';
import { type DesiredName, desiredName, type LeftOut } from './desired.ts';
import { hasLabels, isOwn, ownLabels } from './ownership.ts';
import { planSlices } from './slices.ts';
import type { DnsZone } from './target.ts';

/** All that a decision about one name rests on. */
export interface DnsSnapshot {
  readonly serviceName: string;
  /** Those that are to be in DNS; longest registered first. */
  readonly instances: readonly ServiceRegistration[];
  /** The one of this name, whoever's. */
  readonly service: Service | undefined;
  /** All that say that they are of that Service, whoever's. */
  readonly slices: readonly EndpointSlice[];
  /** Whether a slice, whoever's, has this name. */
  readonly isSliceNameTaken: (name: string) => boolean;
  readonly zone: DnsZone;
  /** Where the registrations are. */
  readonly registrationNamespace: string;
  /** Whether the Event has lately been recorded. */
  readonly isTold: (event: EventChange) => boolean;
}

type WantedService = NonNullable<DesiredName['service']>;

/** Makes Service and EndpointSlices of a name say where its living instances are. */
export function planDns(snapshot: DnsSnapshot): Decision {
  const { service, instances, registrationNamespace } = snapshot;
  const wanted = desiredName(instances, snapshot.zone);
  const slices = snapshot.slices.filter((slice) => isOwn(slice, registrationNamespace) && !isGoing(slice));
  const isOurs = service !== undefined && isOwn(service, registrationNamespace);
  const [first] = instances;
  if (wanted.service !== undefined && service !== undefined && !isOurs) {
    const taken = first === undefined ? [] : [nameTaken(first, service)];
    return { changes: [...removals(endpointSliceKind, slices), ...events(snapshot, taken)] };
  }
  const warnings = events(snapshot, wanted.leftOut);
  if (wanted.service === undefined) {
    const services = service !== undefined && isOurs ? [service] : [];
    return { changes: [...removals(serviceKind, services), ...removals(endpointSliceKind, slices), ...warnings] };
  }
  // Somebody's finalizer holds it; its end enqueues again.
  if (service !== undefined && isGoing(service)) return { changes: warnings };
  const applied = planService(snapshot, wanted.service);
  // Its slices need its uid.
  if (service === undefined) return { changes: [...applied, ...warnings], requeueAfterMs: 0 };
  const { port } = wanted.service;
  const planned = planSlices({
    service,
    portName: port.name,
    endpoints: wanted.endpoints,
    slices,
    labels: labelsOf(snapshot),
    isTaken: snapshot.isSliceNameTaken,
  });
  return { changes: [...applied, ...planned, ...warnings] };
}

function planService(snapshot: DnsSnapshot, wanted: WantedService): Change[] {
  const { serviceName, service, zone } = snapshot;
  const spec = specOf(wanted);
  const own = labelsOf(snapshot);
  if (service !== undefined && hasLabels(service.metadata.labels, own) && says(service, wanted)) return [];
  const metadata = { name: serviceName, namespace: zone.namespace, labels: own };
  return [{ action: 'apply', kind: serviceKind, object: service, manifest: { metadata, spec } }];
}

function labelsOf({ registrationNamespace, serviceName }: DnsSnapshot): Readonly<Record<string, string>> {
  return { ...ownLabels(registrationNamespace), [labels.service]: serviceName };
}

function specOf(wanted: WantedService): object {
  const { name, port, appProtocol } = wanted.port;
  const ports = [{ name, port, protocol: 'TCP', appProtocol }];
  return wanted.type === 'headless'
    ? { type: 'ClusterIP', clusterIP: 'None', ports }
    : { type: 'ExternalName', externalName: wanted.host, ports };
}

/** Ports that somebody has added are theirs. */
function says({ spec }: Service, wanted: WantedService): boolean {
  const { name, port, appProtocol } = wanted.port;
  const isSame =
    wanted.type === 'headless'
      ? spec?.type === 'ClusterIP' && spec.clusterIP === 'None'
      : spec?.type === 'ExternalName' && spec.externalName === wanted.host;
  const found = spec?.ports?.find((each) => each.port === port && each.protocol === 'TCP');
  return isSame && found?.name === name && found.appProtocol === appProtocol;
}

function removals(kind: ResourceKind<KubeObject>, objects: readonly KubeObject[]): Change[] {
  return objects.filter((object) => !isGoing(object)).map((object) => ({ action: 'delete', kind, object }));
}

function isGoing({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function nameTaken(registration: ServiceRegistration, { metadata }: Service): LeftOut {
  const message = `the Service ${metadata.name} in ${metadata.namespace ?? 'default'} is somebody else's`;
  return { registration, reason: 'NameTaken', message };
}

function events({ isTold }: DnsSnapshot, leftOut: readonly LeftOut[]): EventChange[] {
  const all = leftOut.map(({ registration, reason, message }): EventChange => {
    return { action: 'event', regarding: registration, type: 'Warning', reason, message: `Not in DNS: ${message}` };
  });
  return all.filter((event) => !isTold(event));
}
