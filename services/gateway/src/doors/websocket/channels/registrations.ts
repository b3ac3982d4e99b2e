import { capabilities, type InstanceRecord, type ServiceRecord } from '@rollcall/client/registry-types.ts';
import { sameFacts, sameInstance } from '@rollcall/client/watch.ts';
import { channelScope } from '@rollcall/platform/http/scopes.ts';
import { type TSchema, Type } from 'typebox';
import type { ChannelSource } from './channel-source.ts';
import { createTopic, sourceOf, type Topic } from './topic.ts';

const CAPACITY = 5000;

const service = {
  service_name: Type.String(),
  service_url: Type.String(),
  service_id: Type.String({ description: 'The same for all instances of a service' }),
  registered_at: Type.String(),
  last_heartbeat: Type.String({ description: 'As of this change; heartbeats are no events' }),
  capabilities: Type.Array(Type.Enum([...capabilities])),
};

const instance = {
  instance_id: Type.Optional(Type.String({ description: 'Absent of the one that registered without an id' })),
  ...service,
  healthy: Type.Boolean({ description: 'Whether it gets requests before those that are not well, or about to end' }),
  health: Type.Optional(Type.String({ description: 'What it last said of its health' })),
  version: Type.Optional(Type.String()),
  metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
  zone: Type.Optional(Type.String()),
  weight: Type.Optional(Type.Integer()),
  graphql_path: Type.Optional(Type.String()),
  check: Type.Optional(
    Type.Object({
      type: Type.Enum(['http', 'tcp', 'grpc']),
      status: Type.Optional(Type.Enum(['passing', 'failing'])),
    }),
  ),
};

type GoneRegistration = 'expired' | 'removed';

/** The services that are registered, as the registry sends them. */
export function createRegistrationsTopic(): Topic<ServiceRecord, GoneRegistration> {
  return createTopic<ServiceRecord, GoneRegistration>({
    keyOf: ({ service_name }) => service_name,
    isSame: sameFacts,
    channelsOf: () => ['registrations'],
    payloadOf: ({ type, item }) => ({ type, service: item }),
    capacity: CAPACITY,
  });
}

/** The programs behind them. */
export function createInstancesTopic(): Topic<InstanceRecord, GoneRegistration> {
  return createTopic<InstanceRecord, GoneRegistration>({
    keyOf: ({ service_name, instance_id = '' }) => `${service_name}:${instance_id}`,
    isSame: sameInstance,
    channelsOf: () => ['instances'],
    payloadOf: ({ type, item }) => ({ type, instance: item }),
    capacity: CAPACITY,
  });
}

export function registrationsSource(topic: Topic<ServiceRecord, GoneRegistration>): ChannelSource {
  const summary = 'All services that are registered, then which are added, modified, expired or removed';
  return channelOf(topic, {
    address: 'registrations',
    summary,
    item: { service: Type.Optional(Type.Object(service)) },
  });
}

export function instancesSource(topic: Topic<InstanceRecord, GoneRegistration>): ChannelSource {
  const summary = 'All programs behind the services, then which are added, modified, expired or removed';
  return channelOf(topic, { address: 'instances', summary, item: { instance: Type.Optional(Type.Object(instance)) } });
}

interface Described {
  readonly address: string;
  readonly summary: string;
  readonly item: Readonly<Record<string, TSchema>>;
}

function channelOf<Item extends object>(
  topic: Topic<Item, GoneRegistration>,
  { address, summary, item }: Described,
): ChannelSource {
  const payload = Type.Object({
    type: Type.Enum(['added', 'modified', 'expired', 'removed', 'synced']),
    ...item,
  });
  return sourceOf(topic, {
    channels: [{ address, summary, scope: channelScope(address), payload }],
    serves: (channel) => channel === address,
  });
}
