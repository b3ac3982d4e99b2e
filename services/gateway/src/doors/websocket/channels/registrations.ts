import { capabilities, type ServiceRecord } from '@rollcall/client/registry-types.ts';
import { sameFacts } from '@rollcall/client/watch.ts';
import { channelScope } from '@rollcall/platform/http/scopes.ts';
import { Type } from 'typebox';
import type { ChannelSource } from './channel-source.ts';
import { createTopic, sourceOf, type Topic } from './topic.ts';

const CHANNEL = 'registrations';
const SCOPE = channelScope(CHANNEL);
const CAPACITY = 5000;

const RegistrationEvent = Type.Object({
  type: Type.Enum(['added', 'modified', 'expired', 'removed', 'synced']),
  service: Type.Optional(
    Type.Object({
      service_name: Type.String(),
      service_url: Type.String(),
      service_id: Type.String(),
      registered_at: Type.String(),
      last_heartbeat: Type.String({ description: 'As of this change; heartbeats are no events' }),
      capabilities: Type.Array(Type.Enum([...capabilities])),
    }),
  ),
});

type GoneRegistration = 'expired' | 'removed';

/** The registrations, as the registry sends them. */
export function createRegistrationsTopic(): Topic<ServiceRecord, GoneRegistration> {
  return createTopic<ServiceRecord, GoneRegistration>({
    keyOf: ({ service_name }) => service_name,
    isSame: sameFacts,
    channelsOf: () => [CHANNEL],
    payloadOf: ({ type, item }) => ({ type, service: item }),
    capacity: CAPACITY,
  });
}

export function registrationsSource(topic: Topic<ServiceRecord, GoneRegistration>): ChannelSource {
  const summary = 'All that is registered, then what is added, modified, expired or removed';
  return sourceOf(topic, {
    channels: [{ address: CHANNEL, summary, scope: SCOPE, payload: RegistrationEvent }],
    serves: (channel) => channel === CHANNEL,
  });
}
