import { HttpError } from '@rollcall/platform/http/errors.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import type { Static } from 'typebox';
import { errorCatalogue, REGISTRATION_REFUSALS, RegistryError } from '../../common/errors.ts';
import { parseCursor, parseLimit } from '../../common/limit.ts';
import { meantBy } from '../../http/misspelt-members.ts';
import { type Rendered, sendRendered } from '../../http/rendered.ts';
import { ConditionalHeaders, conditional } from '../../http/schemas.ts';
import { type Watched, type WatchRoute, watchRoute } from '../../http/watch-route.ts';
import type { Directory, DirectoryEntry } from '../domain/directory.ts';
import { isHealthy } from '../domain/instances.ts';
import type { Registration } from '../domain/registration.ts';
import {
  lookUpService,
  type RegistrationsDeps,
  recordHeartbeat,
  registerService,
  unregisterService,
} from '../domain/registrations.ts';
import { directoryFilter, type PageRequest, pageOf, type ServiceFilter } from '../domain/service-filter.ts';
import { readCheck } from './check-schemas.ts';
import { instanceIdOf } from './instance-id.ts';
import {
  HeartbeatResponse,
  InstanceHeaders,
  InstanceQuery,
  instanceRecord,
  ListQuery,
  ListResponse,
  RegisterBody,
  RegisterResponse,
  RegistrationRecord,
  registrationRecord,
  ServiceParams,
  UnregisterResponse,
} from './registration-schemas.ts';
import { cachedList, renderList, renderPage } from './rendering.ts';

export interface ServiceRoutesDeps {
  readonly registrations: RegistrationsDeps;
  readonly directory: Directory<Rendered>;
}

const tags = ['services'];
/** The path of a service is checked by the domain; a compiled schema would cost more than the lookup. */
const unchecked = () => () => true;

/** GET /services/watch. */
export function serviceWatchRoute(
  app: App,
  {
    directory,
    feed,
    source,
    streams,
    instances,
    lastBeatAt,
  }: Pick<ServiceRoutesDeps, 'directory'> &
    Pick<WatchRoute<Registration>, 'feed' | 'source' | 'streams'> & {
      readonly instances: Pick<Watched<Registration>, 'feed' | 'source'>;
      readonly lastBeatAt: (id: string) => Date | undefined;
    },
): void {
  watchRoute(app, {
    feed,
    source,
    streams,
    kind: 'service',
    summary: 'Follow registrations as server-sent events: added, modified, expired, removed',
    record: (registration) => registrationRecord(registration, lastBeatAt(registration.id)),
    instances: {
      ...instances,
      record: (registration) => instanceRecord(registration, registration.serviceId, lastBeatAt(registration.id)),
    },
    namesake: {
      described: 'the service named `watch`',
      send(request, reply) {
        const entry = directory.find('watch');
        if (entry !== undefined) sendRendered(request, reply, entry.rendered);
        return entry !== undefined;
      },
      absent: new RegistryError('SERVICE_NOT_FOUND', "Service 'watch' is not in the registry"),
    },
  });
}

/** Contract 1, `/services`, with filters and validators beyond it. */
export function serviceRoutes(app: App, deps: ServiceRoutesDeps): void {
  registerRoute(app, deps);
  readRoutes(app, deps);
  heartbeatRoute(app, deps);
  unregisterRoute(app, deps);
}

function registerRoute(app: App, { registrations }: ServiceRoutesDeps): void {
  app.post(
    '/services/register',
    {
      config: {
        refusals: ['INVALID_SERVICE_URL', 'TOO_MANY_REGISTRATIONS', ...REGISTRATION_REFUSALS],
      },
      schema: {
        tags,
        summary: 'Register a service, or renew a live registration with a new URL and capabilities',
        description:
          'A service may be called `register`, too: other methods of this path are those of `/services/{service_name}`, and `Allow` ' +
          'names them.',
        headers: InstanceHeaders,
        body: RegisterBody,
        response: { 200: RegisterResponse },
      },
    },
    async (request) => {
      const {
        service_name,
        service_url,
        capabilities = [],
        metadata,
        zone,
        weight,
        graphql_path,
        check,
      } = request.body;
      const instanceId = instanceIdOf(request, request.body.instance_id);
      const registered = await registerService(registrations, {
        serviceName: service_name,
        instanceId,
        url: service_url,
        capabilities,
        metadata,
        zone,
        weight,
        graphqlPath: graphql_path,
        check: readCheck(check),
        owner: request.subject,
      });
      return {
        ...registrationRecord(registered),
        ...(instanceId === undefined ? {} : { instance_id: instanceId }),
        ttl: registered.ttlSeconds ?? registrations.ttlSeconds,
        ...(isHealthy(registered) ? {} : { healthy: false as const }),
      };
    },
  );
}

function readRoutes(app: App, { registrations, directory }: ServiceRoutesDeps): void {
  const everything = cachedList(directory);
  app.get(
    '/services',
    {
      config: { access: 'read' },
      compress: {},
      schema: {
        tags,
        summary: 'List services',
        headers: ConditionalHeaders,
        querystring: ListQuery,
        response: conditional(ListResponse),
      },
    },
    (request, reply) => {
      const { query } = request;
      if (Object.keys(query).length === 0) return sendRendered(request, reply, everything());
      const list = directory.matching(directoryFilter(filterOf(query)));
      return sendRendered(request, reply, isPaged(query) ? renderPage(pageOf(list, pageIn(query))) : renderList(list));
    },
  );

  async function lookUp(serviceName: string): Promise<DirectoryEntry<Rendered>> {
    const registration = await lookUpService(registrations, serviceName);
    const entry = directory.find(registration.serviceName);
    // Found, but meanwhile known to be gone.
    if (entry === undefined) throw new RegistryError('SERVICE_NOT_FOUND');
    return entry;
  }

  app.get<{ Params: { service_name: string } }>(
    '/services/:service_name',
    {
      config: { access: 'read', refusals: ['SERVICE_NOT_FOUND', 'OVERLOADED'] },
      schema: {
        tags,
        summary: 'Get one service',
        headers: ConditionalHeaders,
        params: ServiceParams,
        response: conditional(RegistrationRecord),
      },
      validatorCompiler: unchecked,
    },
    (request, reply) => {
      const serviceName = request.params.service_name;
      const entry = directory.lookUp(serviceName);
      if (entry === undefined) return lookUp(serviceName).then((found) => sendRendered(request, reply, found.rendered));
      sendRendered(request, reply, entry.rendered);
      return undefined;
    },
  );
}

const METADATA = 'metadata.';

type Query = Static<typeof ListQuery>;

/** @throws RegistryError INVALID_REQUEST for what seems to be of metadata, and is not, or is given twice. */
function filterOf({ capability, prefix, zone, healthy, ...rest }: Query): ServiceFilter {
  for (const name of Object.keys(rest)) checkMetadataFilter(name);
  const entries = Object.entries<unknown>(rest).filter(([name]) => name.startsWith(METADATA));
  const metadata = Object.fromEntries(entries.map(([name, value]) => [name.slice(METADATA.length), once(name, value)]));
  return { capability, prefix, zone, healthy: healthy === 'true', metadata };
}

/** A filter that is ignored would answer with all. */
function checkMetadataFilter(name: string): void {
  if (name.startsWith(METADATA) && name !== METADATA) return;
  const [start = ''] = name.split(/[.[]/, 1);
  if (start !== 'metadata' && meantBy(start, ['metadata']) === undefined) return;
  const hint = "; 'metadata.<name>' may be meant";
  throw new RegistryError('INVALID_REQUEST', `The query may not have '${name.slice(0, 64)}'${hint}`);
}

/** No instance has two values of one. @throws RegistryError INVALID_REQUEST. */
function once(name: string, value: unknown): string {
  if (typeof value === 'string') return value;
  throw new RegistryError('INVALID_REQUEST', `${name} must be given once`);
}

function isPaged({ limit, cursor }: Query): boolean {
  return limit !== undefined || cursor !== undefined;
}

/** @throws RegistryError INVALID_REQUEST for a limit or a cursor that is none. */
function pageIn({ limit, cursor }: Query): PageRequest {
  return { after: cursor === undefined ? '' : parseCursor(cursor), limit: parseLimit(limit) };
}

function heartbeatRoute(app: App, { registrations }: ServiceRoutesDeps): void {
  app.post<{
    Params: { service_name: string };
    Querystring: { instance_id?: string };
    Body: { readonly instance_id?: unknown } | null | undefined;
  }>(
    '/services/:service_name/heartbeat',
    {
      config: {
        refusals: REGISTRATION_REFUSALS,
      },
      schema: {
        tags,
        summary: 'Refresh the TTL',
        description:
          '400, and not 404, where no such service is registered: it must register again. It needs no body; `instance_id` of a JSON ' +
          'object is read as that of the query.',
        headers: InstanceHeaders,
        querystring: InstanceQuery,
        params: ServiceParams,
        response: { 200: HeartbeatResponse },
      },
      validatorCompiler: unchecked,
    },
    async (request) => {
      const serviceName = request.params.service_name;
      const instanceId = instanceIdOf(request, request.query.instance_id ?? request.body?.instance_id);
      try {
        const ttl = await recordHeartbeat(registrations, { serviceName, instanceId }, request.subject);
        return { service_name: serviceName, message: `Heartbeat of '${serviceName}' received`, ttl };
      } catch (error) {
        throw notFoundAsBadRequest(error);
      }
    },
  );
}

/**
 * As the contract has it for heartbeats: a service that is not there is the caller's fault, 400 and
 * not 404.
 */
function notFoundAsBadRequest(error: unknown): unknown {
  if (!(error instanceof RegistryError) || error.code !== 'SERVICE_NOT_FOUND') return error;
  return new HttpError(400, errorCatalogue.SERVICE_NOT_FOUND.error, { message: error.message });
}

function unregisterRoute(app: App, { registrations }: ServiceRoutesDeps): void {
  app.delete<{ Params: { service_name: string }; Querystring: { instance_id?: string } }>(
    '/services/:service_name',
    {
      config: {
        refusals: ['SERVICE_NOT_FOUND', ...REGISTRATION_REFUSALS],
      },
      schema: {
        tags,
        summary: 'Unregister a service',
        headers: InstanceHeaders,
        querystring: InstanceQuery,
        params: ServiceParams,
        response: { 200: UnregisterResponse },
      },
      validatorCompiler: unchecked,
    },
    async (request) => {
      const serviceName = request.params.service_name;
      const instanceId = instanceIdOf(request, request.query.instance_id);
      await unregisterService(registrations, { serviceName, instanceId }, request.subject);
      return { message: `Service '${serviceName}' was removed`, service_name: serviceName };
    },
  );
}
