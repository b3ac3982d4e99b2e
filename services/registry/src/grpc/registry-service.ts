import type { UntypedServiceImplementation } from '@grpc/grpc-js';
import { RegistryError } from '../common/errors.ts';
import type { FeedSource } from '../feeds/catch-up.ts';
import type { Directory } from '../registrations/domain/directory.ts';
import type { RegistrationFeed } from '../registrations/domain/feed.ts';
import type { ServiceReport } from '../registrations/domain/registration.ts';
import {
  livingInstances,
  lookUpService,
  type RegistrationsDeps,
  recordHeartbeat,
  registerService,
  reportService,
  unregisterService,
} from '../registrations/domain/registrations.ts';
import { directoryFilter, pageOf } from '../registrations/domain/service-filter.ts';
import type { Calls } from './calls.ts';
import {
  type InstanceMessage,
  type InstanceRequest,
  instanceMessage,
  type ListRequest,
  type ListResponse,
  type NameRequest,
  type RegisterRequest,
  type RegisterResponse,
  type Report,
  type ReportHealthRequest,
  type ReportLifecycleRequest,
  readCapabilities,
  readCapability,
  readDetails,
  readFacts,
  readKey,
  readTimestamp,
  type ServiceMessage,
  serviceMessage,
} from './messages.ts';
import type { WatchStreams } from './watch.ts';

/** What the HTTP routes work on, too. */
export interface RegistryBackend {
  readonly registrations: RegistrationsDeps;
  readonly directory: Pick<Directory<unknown>, 'lookUp' | 'matching'>;
  readonly feed: RegistrationFeed;
  readonly source: FeedSource;
  readonly instances: { readonly feed: RegistrationFeed; readonly source: FeedSource };
  readonly lastBeatAt: (id: string) => Date | undefined;
}

const PAGE_SIZE = 1000;
const PAGE_SIZE_MAX = 10_000;

/** The methods of rollcall.registry.v1.Registry: another door to what the HTTP routes do. */
export function registryService(
  backend: RegistryBackend,
  calls: Calls,
  watches: WatchStreams,
): UntypedServiceImplementation {
  const { registrations } = backend;
  return {
    Register: calls.unary('Register', (request: RegisterRequest, subject) => register(registrations, request, subject)),
    Unregister: calls.unary('Unregister', async (request: InstanceRequest, subject) => {
      await unregisterService(registrations, readKey(request), subject);
      return {};
    }),
    ListInstances: calls.unary('ListInstances', (request: NameRequest) => listInstances(backend, request)),
    Get: calls.unary('Get', async ({ serviceName }: NameRequest) => ({ service: await find(backend, serviceName) })),
    List: calls.unary('List', (request: ListRequest) => list(backend, request)),
    Heartbeat: calls.unary('Heartbeat', async (request: InstanceRequest, subject) => ({
      ttl: { seconds: await recordHeartbeat(registrations, readKey(request), subject) },
    })),
    ReportHealth: calls.unary('ReportHealth', (request: ReportHealthRequest, subject) =>
      report(registrations, request, { kind: 'health', word: request.status, subject }),
    ),
    ReportLifecycle: calls.unary('ReportLifecycle', (request: ReportLifecycleRequest, subject) =>
      report(registrations, request, { kind: 'lifecycle', word: request.event, subject }),
    ),
    Watch: watches.handle,
  };
}

async function register(
  registrations: RegistrationsDeps,
  request: RegisterRequest,
  subject: string | undefined,
): Promise<RegisterResponse> {
  const registered = await registerService(registrations, {
    ...readKey(request),
    url: request.serviceUrl,
    capabilities: readCapabilities(request.capabilities),
    ...readFacts(request),
    owner: subject,
  });
  return {
    ...serviceMessage(registered),
    instanceId: request.instanceId,
    ttl: { seconds: registered.ttlSeconds ?? registrations.ttlSeconds },
  };
}

async function find(backend: RegistryBackend, serviceName: string): Promise<ServiceMessage> {
  const known = backend.directory.lookUp(serviceName)?.registration;
  const registration = known ?? (await lookUpService(backend.registrations, serviceName));
  return serviceMessage(registration, backend.lastBeatAt(registration.id));
}

function list({ directory, lastBeatAt }: RegistryBackend, request: ListRequest): ListResponse {
  const { capability, prefix, zone, healthy, metadata, pageSize, pageToken } = request;
  if (pageSize < 0 || pageSize > PAGE_SIZE_MAX) {
    throw new RegistryError('INVALID_REQUEST', `page_size must be from 0 to ${PAGE_SIZE_MAX}`);
  }
  const wanted = directoryFilter({
    capability: capability === 'CAPABILITY_UNSPECIFIED' ? undefined : readCapability(capability),
    prefix,
    zone: zone === '' ? undefined : zone,
    healthy,
    metadata,
  });
  const limit = pageSize === 0 ? PAGE_SIZE : pageSize;
  const { entries, next = '' } = pageOf(directory.matching(wanted), { after: pageToken, limit });
  const services = entries.map(({ registration }) => serviceMessage(registration, lastBeatAt(registration.id)));
  return { services, nextPageToken: next };
}

async function listInstances(
  { registrations, lastBeatAt }: RegistryBackend,
  { serviceName }: NameRequest,
): Promise<{ readonly instances: readonly InstanceMessage[] }> {
  const { serviceId } = await lookUpService(registrations, serviceName);
  const instances = livingInstances(registrations.store, serviceName);
  return { instances: instances.map((each) => instanceMessage({ ...each, serviceId }, lastBeatAt(each.id))) };
}

async function report(
  registrations: RegistrationsDeps,
  request: Report,
  { subject, ...said }: Pick<ServiceReport, 'kind' | 'word'> & { readonly subject: string | undefined },
): Promise<object> {
  const { timestamp, details } = request;
  const at = timestamp === null ? registrations.clock.now() : readTimestamp(timestamp);
  const whole = { ...said, at, details: readDetails(details) };
  await reportService(registrations, { ...readKey(request), subject, report: whole });
  return {};
}
