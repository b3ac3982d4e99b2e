import { type Static, Type } from 'typebox';
import { instanceIdRules } from '../../common/validation.ts';
import { documented } from '../../http/documented.ts';
import { named, ServiceName, Timestamp, timestamp } from '../../http/schemas.ts';
import { capabilityNames, type Registration } from '../domain/registration.ts';

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

/** In place of a member of the body or of the query. */
export const InstanceHeaders = Type.Object({ 'x-instance-id': Type.Optional(InstanceId) });
export const InstanceQuery = Type.Object({ instance_id: Type.Optional(InstanceId) });

export const RegisterBody = Type.Object({
  service_name: ServiceName,
  instance_id: Type.Optional(InstanceId),
  service_url: ServiceUrl,
  capabilities: Type.Optional(Capabilities),
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
  health: Type.Optional(Type.String({ description: 'What it last said of its health' })),
  version: Type.Optional(Type.String({ description: 'The version that it runs, where that is known' })),
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
});

export const ListResponse = Type.Object({
  services: Type.Array(RegistrationRecord),
  total: Type.Integer({ description: 'Number of services in the answer' }),
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
  const { instanceId, health, currentVersion } = registration;
  return {
    ...(instanceId === undefined ? {} : { instance_id: instanceId }),
    ...registrationRecord({ ...registration, serviceId }, lastBeatAt),
    ...(health === undefined ? {} : { health }),
    ...(currentVersion === undefined ? {} : { version: currentVersion }),
  };
}
