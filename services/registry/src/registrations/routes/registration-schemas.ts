import { type Static, Type } from 'typebox';
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

export const RegisterBody = Type.Object({
  service_name: ServiceName,
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
    service_id: registration.id,
    registered_at: timestamp(registration.registeredAt),
    last_heartbeat: timestamp(lastHeartbeat),
    capabilities: [...registration.capabilities],
  };
}
