import { annotations } from '@rollcall/crds/kinds.ts';
import type { ServiceRegistrationSpec } from '@rollcall/crds/types.gen.ts';
import type { Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import { objectKey } from '@rollcall/platform/kube/store.ts';

type Capability = ServiceRegistrationSpec['capabilities'][number];

/** What a Service asks to be registered as. */
export type DesiredSpec = Omit<ServiceRegistrationSpec, 'ttlSeconds'>;

export type Desired =
  | { readonly wanted: 'nothing' }
  | { readonly wanted: 'registration'; readonly spec: DesiredSpec }
  /** The Service asks for something that no registration can be. */
  | { readonly wanted: 'impossible'; readonly faults: readonly string[] };

const CAPABILITIES: readonly Capability[] = ['rest', 'graphql', 'grpc', 'mcp'];
const NAME_LIMIT = 253;
const URL_LIMIT = 2048;
/** White space, control characters, and what separates parts of a name elsewhere. */
const NOT_IN_NAMES = /[:\s\p{Z}\p{Cc}\u{FEFF}]/u;
const NOT_IN_URLS = /[\s\p{Z}\p{Cc}\u{FEFF}]/u;

/** Whether a Service asks to be registered. */
export function isAnnotated({ metadata }: Service): boolean {
  return metadata.annotations?.[annotations.register] === 'true' && metadata.deletionTimestamp === undefined;
}

/** Reads the annotations of a Service; its own name, first port and REST fill in for those that are absent. */
export function desiredRegistration(service: Service): Desired {
  if (!isAnnotated(service)) return { wanted: 'nothing' };
  const given = service.metadata.annotations ?? {};
  const faults: string[] = [];
  const serviceName = given[annotations.serviceName] ?? service.metadata.name;
  const nameFault = faultOfName(serviceName);
  if (nameFault !== undefined) faults.push(`${annotations.serviceName} ${nameFault}`);
  const url = given[annotations.url] ?? defaultUrl(service);
  const urlFault = url === undefined ? 'is needed, because the Service has no port' : faultOfUrl(url);
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

/** The port that is named http or https, else the first; https where its name or appProtocol says so. */
function defaultUrl(service: Service): string | undefined {
  const ports = service.spec?.ports ?? [];
  const port = ports.find(({ name }) => name === 'https' || name === 'http') ?? ports[0];
  if (port === undefined) return undefined;
  const secure = port.name === 'https' || port.appProtocol?.toLowerCase() === 'https';
  const [namespace = 'default', name = ''] = objectKey(service).split('/');
  return `${secure ? 'https' : 'http'}://${name}.${namespace}.svc:${port.port}`;
}

function faultOfName(name: string): string | undefined {
  if (name === '' || name.length > NAME_LIMIT) return `must have 1 to ${NAME_LIMIT} characters`;
  if (name === '*') return 'must not be *, which stands for all services';
  return NOT_IN_NAMES.test(name) ? "must not contain ':', white space or control characters" : undefined;
}

function faultOfUrl(url: string): string | undefined {
  if (url.length > URL_LIMIT) return `must have at most ${URL_LIMIT} characters`;
  const parsed = URL.canParse(url) && !NOT_IN_URLS.test(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:\/\//.test(url)) return 'must be an absolute http or https URL';
  return parsed.username === '' && parsed.password === '' ? undefined : 'must not carry credentials';
}
