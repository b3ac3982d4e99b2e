import { annotations } from '@rollcall/crds/kinds.ts';
import type { ServiceRegistrationSpec } from '@rollcall/crds/types.gen.ts';
import type { Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import { objectKey } from '@rollcall/platform/kube/store.ts';
import { serviceNameFault, serviceUrlFault } from '@rollcall/platform/service-address.ts';

type Capability = ServiceRegistrationSpec['capabilities'][number];

/** What a Service asks to be registered as. */
export type DesiredSpec = Omit<ServiceRegistrationSpec, 'ttlSeconds'>;

export type Desired =
  /** With a fault: what the Service says of being registered cannot be understood. */
  | { readonly wanted: 'nothing'; readonly fault?: string }
  | { readonly wanted: 'registration'; readonly spec: DesiredSpec }
  /** One for each endpoint. */
  | { readonly wanted: 'instances'; readonly spec: Omit<DesiredSpec, 'url'>; readonly port: EndpointPort }
  /** The Service asks for something that no registration can be. */
  | { readonly wanted: 'impossible'; readonly faults: readonly string[] };

/** How the endpoints of a Service are reached. */
interface EndpointPort {
  readonly scheme: 'http' | 'https';
  /** Of the port in EndpointSlices: a pod may have another number than the Service. */
  readonly name: string;
}

const CAPABILITIES: readonly Capability[] = ['rest', 'graphql', 'grpc', 'mcp'];

/** Whether a Service asks to be registered. */
export function isAnnotated(service: Service): boolean {
  return registerValue(service) === 'true';
}

/** Whether a Service asks for its endpoints to be registered, though perhaps with faults. */
export function wantsEndpoints(service: Service): boolean {
  return isAnnotated(service) && formOf(service) !== 'service';
}

/** Whether a Service says anything of being registered, in whatever words. */
export function mentionsRegistration(service: Service): boolean {
  return registerValue(service) !== 'false';
}

/** Of a Service that says nothing of it, or goes: `false`. */
function registerValue({ metadata }: Service): string {
  return metadata.deletionTimestamp === undefined ? (metadata.annotations?.[annotations.register] ?? 'false') : 'false';
}

function formOf({ metadata }: Service): string {
  return metadata.annotations?.[annotations.instances] ?? 'service';
}

/** Reads the annotations of a Service; its own name, first port and REST are the defaults. */
export function desiredRegistration(service: Service): Desired {
  if (!mentionsRegistration(service)) return { wanted: 'nothing' };
  if (!isAnnotated(service)) return { wanted: 'nothing', fault: `${annotations.register} must be "true" or "false"` };
  const faults: string[] = [];
  const serviceName = readName(service, faults);
  const form = formOf(service);
  if (form !== 'service' && form !== 'endpoints') faults.push(`${annotations.instances} must be service or endpoints`);
  const port = form === 'endpoints' ? readEndpointPort(service, faults) : undefined;
  const url = form === 'endpoints' ? undefined : readUrl(service, faults);
  const spec = { serviceName, capabilities: readCapabilities(service, faults), source: 'KubernetesService' } as const;
  if (faults.length > 0) return { wanted: 'impossible', faults };
  if (port !== undefined) return { wanted: 'instances', spec, port };
  return url === undefined ? { wanted: 'nothing' } : { wanted: 'registration', spec: { ...spec, url } };
}

function readName({ metadata }: Service, faults: string[]): string {
  const name = metadata.annotations?.[annotations.serviceName] ?? metadata.name;
  const fault = serviceNameFault(name);
  if (fault !== undefined) faults.push(`${annotations.serviceName} ${fault}`);
  return name;
}

function readCapabilities({ metadata }: Service, faults: string[]): Capability[] {
  const listed = (metadata.annotations?.[annotations.capabilities] ?? 'rest').split(',').map((name) => name.trim());
  const unknown = listed.filter((name) => name !== '' && !CAPABILITIES.some((capability) => capability === name));
  if (unknown.length > 0) faults.push(`${annotations.capabilities} may hold ${CAPABILITIES.join(', ')} only`);
  return CAPABILITIES.filter((capability) => listed.includes(capability));
}

function readUrl(service: Service, faults: string[]): string | undefined {
  const url = service.metadata.annotations?.[annotations.url] ?? defaultUrl(service);
  const fault = url === undefined ? 'is needed, because the Service has no TCP port' : serviceUrlFault(url);
  if (fault !== undefined) faults.push(`${annotations.url} ${fault}`);
  return url;
}

function readEndpointPort(service: Service, faults: string[]): EndpointPort | undefined {
  const { metadata, spec } = service;
  if (metadata.annotations?.[annotations.url] !== undefined) {
    faults.push(`${annotations.url} has no meaning with ${annotations.instances}: each endpoint has its own`);
  }
  const port = spec?.type === 'ExternalName' ? undefined : portOf(service);
  if (port === undefined) {
    faults.push(`${annotations.instances} must not be endpoints, because the Service has no endpoints with a TCP port`);
    return undefined;
  }
  return { scheme: schemeOf(port), name: port.name ?? '' };
}

/** The Service that a registration was made from, as `namespace/name`. */
export function importedFrom(registration: {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: { readonly source: string };
}): string | undefined {
  if (registration.spec.source !== 'KubernetesService') return undefined;
  return registration.metadata.annotations?.[annotations.importedFrom];
}

type Port = NonNullable<NonNullable<Service['spec']>['ports']>[number];

/** Of the TCP ports the one that is named http or https, else the first. */
function portOf({ spec }: Service): Port | undefined {
  const ports = (spec?.ports ?? []).filter(({ protocol = 'TCP' }) => protocol === 'TCP');
  return ports.find(({ name }) => name === 'https' || name === 'http') ?? ports[0];
}

/** https where the port's name or appProtocol says so. */
function schemeOf({ name, appProtocol }: Port): EndpointPort['scheme'] {
  return name === 'https' || appProtocol?.toLowerCase() === 'https' ? 'https' : 'http';
}

function defaultUrl(service: Service): string | undefined {
  const port = portOf(service);
  if (port === undefined) return undefined;
  const [namespace = 'default', name = ''] = objectKey(service).split('/');
  return `${schemeOf(port)}://${name}.${namespace}.svc:${port.port}`;
}
