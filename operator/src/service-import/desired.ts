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
  /** The Service asks for something that no registration can be. */
  | { readonly wanted: 'impossible'; readonly faults: readonly string[] };

const CAPABILITIES: readonly Capability[] = ['rest', 'graphql', 'grpc', 'mcp'];

/** Whether a Service asks to be registered. */
export function isAnnotated(service: Service): boolean {
  return registerValue(service) === 'true';
}

/** Whether a Service says anything of being registered, in whatever words. */
export function mentionsRegistration(service: Service): boolean {
  return registerValue(service) !== 'false';
}

/** Of a Service that says nothing of it, or goes: `false`. */
function registerValue({ metadata }: Service): string {
  return metadata.deletionTimestamp === undefined ? (metadata.annotations?.[annotations.register] ?? 'false') : 'false';
}

/** Reads the annotations of a Service; its own name, first port and REST are the defaults. */
export function desiredRegistration(service: Service): Desired {
  if (!mentionsRegistration(service)) return { wanted: 'nothing' };
  if (!isAnnotated(service)) return { wanted: 'nothing', fault: `${annotations.register} must be "true" or "false"` };
  const given = service.metadata.annotations ?? {};
  const faults: string[] = [];
  const serviceName = given[annotations.serviceName] ?? service.metadata.name;
  const nameFault = serviceNameFault(serviceName);
  if (nameFault !== undefined) faults.push(`${annotations.serviceName} ${nameFault}`);
  const url = given[annotations.url] ?? defaultUrl(service);
  const urlFault = url === undefined ? 'is needed, because the Service has no TCP port' : serviceUrlFault(url);
  if (urlFault !== undefined) faults.push(`${annotations.url} ${urlFault}`);
  const listed = (given[annotations.capabilities] ?? 'rest').split(',').map((name) => name.trim());
  const capabilities = CAPABILITIES.filter((capability) => listed.includes(capability));
  const unknown = listed.filter((name) => name !== '' && !CAPABILITIES.some((capability) => capability === name));
  if (unknown.length > 0) faults.push(`${annotations.capabilities} may hold ${CAPABILITIES.join(', ')} only`);
  if (url === undefined || faults.length > 0) return { wanted: 'impossible', faults };
  return { wanted: 'registration', spec: { serviceName, url, capabilities, source: 'KubernetesService' } };
}

/** The Service that a registration was made from, as `namespace/name`. */
export function importedFrom(registration: {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: { readonly source: string };
}): string | undefined {
  if (registration.spec.source !== 'KubernetesService') return undefined;
  return registration.metadata.annotations?.[annotations.importedFrom];
}

/**
 * Of the TCP ports the one that is named http or https, else the first; https where its name or
 * appProtocol says so.
 */
function defaultUrl(service: Service): string | undefined {
  const ports = (service.spec?.ports ?? []).filter(({ protocol = 'TCP' }) => protocol === 'TCP');
  const port = ports.find(({ name }) => name === 'https' || name === 'http') ?? ports[0];
  if (port === undefined) return undefined;
  const secure = port.name === 'https' || port.appProtocol?.toLowerCase() === 'https';
  const [namespace = 'default', name = ''] = objectKey(service).split('/');
  return `${secure ? 'https' : 'http'}://${name}.${namespace}.svc:${port.port}`;
}
