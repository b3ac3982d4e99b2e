import { documented, memberRules } from '@rollcall/platform/http/documented.ts';
import { type Static, Type } from 'typebox';
import { cursorRules } from '../../common/limit.ts';
import {
  graphqlPathRules,
  instanceIdRules,
  metadataKeyRules,
  metadataValueRules,
  weightRules,
  zoneRules,
} from '../../common/validation.ts';
import { Limit, named, ServiceName, Timestamp, timestamp } from '../../http/schemas.ts';
import { isHealthy } from '../domain/instances.ts';
import { capabilityNames, type Registration } from '../domain/registration.ts';
import { Check, CheckRecord, checkRecord } from './check-schemas.ts';

const CapabilityName = Type.Enum([...capabilityNames], { description: 'mcp: Model Context Protocol' });

const Capabilities = Type.Array(CapabilityName, { uniqueItems: true, maxItems: 4 });

const ServiceUrl = Type.String({
  description:
    'Base URL: absolute, http or https, without credentials, query and fragment, at most 2048 characters; not at an address where ' +
    'services may not be',
  ...documented(named('ServiceUrl')),
});

/** Of one of several programs that are registered under a name. */
export const InstanceId = Type.String({
  description: 'Which of the programs of this name it is: a DNS label of 1 to 63 characters, such as the name of a pod',
  ...documented(instanceIdRules),
});

/** For who names none in the body or the query. */
export const InstanceHeaders = Type.Object({ 'x-instance-id': Type.Optional(InstanceId) });
export const InstanceQuery = Type.Object({ instance_id: Type.Optional(InstanceId) });

/** What others may choose instances by. */
const facts = {
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description:
        'Whatever others may choose by: at most 32 entries and 4096 bytes of JSON, without control characters',
      ...documented({
        maxProperties: 32,
        propertyNames: { ...metadataKeyRules, ...memberRules },
        additionalProperties: { type: 'string', ...metadataValueRules },
      }),
    }),
  ),
  zone: Type.Optional(Type.String({ description: 'Where it runs', ...documented(zoneRules) })),
  weight: Type.Optional(
    Type.Integer({
      description: 'How many requests it is to get, compared with other instances; 100 when absent',
      ...documented(weightRules),
    }),
  ),
  graphql_path: Type.Optional(
    Type.String({ description: 'Of its GraphQL API, below the URL', ...documented(graphqlPathRules) }),
  ),
};

export const RegisterBody = Type.Object({
  service_name: ServiceName,
  instance_id: Type.Optional(InstanceId),
  service_url: ServiceUrl,
  capabilities: Type.Optional(Capabilities),
  ...facts,
  check: Type.Optional(Check),
});

const identity = {
  service_name: ServiceName,
  service_url: ServiceUrl,
  service_id: Type.String({ format: 'uuid' }),
  registered_at: Timestamp,
};

export const RegisterResponse = Type.Object({
  ...identity,
  instance_id: Type.Optional(InstanceId),
  capabilities: Capabilities,
  ttl: Type.Integer({ description: 'Seconds until the registration expires without a heartbeat' }),
  healthy: Type.Optional(
    Type.Literal(false, {
      description: 'There where an earlier report stands, or the check fails: a program that starts reports `healthy`',
    }),
  ),
});

/** Contract 1, "Service registration", as lists and lookups have it. */
export const RegistrationRecord = Type.Object({
  ...identity,
  last_heartbeat: Type.String({
    format: 'date-time',
    description:
      'ISO 8601 with offset, by the clock of the replica that accepted it; registered_at where that is later, and for a service ' +
      'that needs no heartbeats (a manifest without TTL, a Kubernetes Service)',
  }),
  capabilities: Capabilities,
});

/** One of the programs that are registered under a name. */
export const InstanceRecord = Type.Object({
  instance_id: Type.Optional(InstanceId),
  ...RegistrationRecord.properties,
  healthy: Type.Boolean({
    description:
      'Whether it gets requests before those that have said that they are unhealthy, degraded or draining, or whose check is failing',
  }),
  health: Type.Optional(Type.String({ description: 'What it last said of its health' })),
  version: Type.Optional(Type.String({ description: 'The version that it runs, where that is known' })),
  ...facts,
  check: Type.Optional(CheckRecord),
});

export const InstancesResponse = Type.Object({
  service_name: ServiceName,
  service_id: identity.service_id,
  instances: Type.Array(InstanceRecord, { description: 'In the order in which they were registered' }),
  total: Type.Integer(),
});

export const InstanceParams = Type.Object({ service_name: ServiceName, instance_id: InstanceId });

export const ListQuery = Type.Object({
  capability: Type.Optional(CapabilityName),
  prefix: Type.Optional(Type.String({ description: 'Start of the service name' })),
  zone: Type.Optional(Type.String({ description: 'Of an instance' })),
  healthy: Type.Optional(
    Type.Enum(['true', 'false'], {
      description: '`true`: with an instance that counts as healthy',
    }),
  ),
  limit: Type.Optional(Limit),
  cursor: Type.Optional(Type.String({ description: '`next_cursor` of the page before', ...documented(cursorRules) })),
});

export const ListResponse = Type.Object({
  services: Type.Array(RegistrationRecord),
  total: Type.Integer({ description: 'Number of services that were asked for, on all pages' }),
  next_cursor: Type.Optional(
    Type.String({
      description: 'Of a list with `limit` or `cursor`: asks for the next page; absent where there is none',
    }),
  ),
});

export const ServiceParams = Type.Object({ service_name: ServiceName });

export const HeartbeatResponse = Type.Object({
  service_name: ServiceName,
  message: Type.String(),
  ttl: Type.Integer(),
});

export const UnregisterResponse = Type.Object({ message: Type.String(), service_name: ServiceName });

/**
 * A registration was last heard from when it was made, at least: one that never had a heartbeat (a
 * manifest), and one whose heartbeats a replica accepted whose clock is behind that of the API
 * server.
 */
export function registrationRecord(
  registration: Registration,
  lastBeatAt: Date = registration.registeredAt,
): Static<typeof RegistrationRecord> {
  const lastHeartbeat = lastBeatAt < registration.registeredAt ? registration.registeredAt : lastBeatAt;
  return {
    service_name: registration.serviceName,
    service_url: registration.url,
    service_id: registration.serviceId,
    registered_at: timestamp(registration.registeredAt),
    last_heartbeat: timestamp(lastHeartbeat),
    capabilities: [...registration.capabilities],
  };
}

/** As {@link registrationRecord}, of one instance. @param serviceId that all instances of the name share. */
export function instanceRecord(
  registration: Registration,
  serviceId: string,
  lastBeatAt?: Date,
): Static<typeof InstanceRecord> {
  const { instanceId, health, currentVersion, metadata, zone, weight, graphqlPath, check } = registration;
  return {
    ...(instanceId === undefined ? {} : { instance_id: instanceId }),
    ...registrationRecord({ ...registration, serviceId }, lastBeatAt),
    healthy: isHealthy(registration),
    ...(health === undefined ? {} : { health }),
    ...(currentVersion === undefined ? {} : { version: currentVersion }),
    ...(metadata === undefined ? {} : { metadata: { ...metadata } }),
    ...(zone === undefined ? {} : { zone }),
    ...(weight === undefined ? {} : { weight }),
    ...(graphqlPath === undefined ? {} : { graphql_path: graphqlPath }),
    ...(check === undefined ? {} : { check: checkRecord(check, registration.checkResult) }),
  };
}
