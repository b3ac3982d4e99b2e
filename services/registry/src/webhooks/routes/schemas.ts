import { documented, memberRules } from '@rollcall/platform/http/documented.ts';
import { serviceNameRules } from '@rollcall/platform/service-address.ts';
import { type Static, Type } from 'typebox';
import { named, Timestamp, timestamp } from '../../http/schemas.ts';
import { ALL_SERVICES, CHANNELS_MAX, channelRules, type DescribedConfig } from '../domain/webhook-configs.ts';

/** A secret of webhooks as a call shows it; never answered. */
export const Secret = Type.String({
  maxLength: 1024,
  writeOnly: true,
  description: 'The stored secret in place of a signature; refused where none is stored',
});
/** Of an answer. */
export const Message = Type.String({ description: 'For people; names the service' });

/** The headers are documented here; Fastify hands them over as they are. */
export const SignatureHeaders = Type.Object({
  'x-webhook-signature': Type.Optional(
    Type.String({
      description:
        'sha256=<hex HMAC-SHA256> with the configured secret, of <timestamp>.<path>.<body>, the path being that at the ' +
        'registry; of the raw body alone without X-Webhook-Timestamp; several by spaces',
    }),
  ),
  'x-webhook-timestamp': Type.Optional(
    Type.String({
      description: 'Unix seconds. With it the call is good once, within five minutes, and for this path',
    }),
  ),
  'webhook-id': Type.Optional(
    Type.String({ description: 'Standard Webhooks: identifies the call, which is good once' }),
  ),
  'webhook-timestamp': Type.Optional(Type.String({ description: 'Standard Webhooks: unix seconds' })),
  'webhook-signature': Type.Optional(
    Type.String({
      description: 'Standard Webhooks: v1,<base64 HMAC-SHA256 of `id.timestamp.body`>; several by spaces',
    }),
  ),
});

/** `*` stands for all services. */
const Scope = Type.String({
  description: "Service name; absent or '*': the global configuration",
  ...documented({ anyOf: [{ const: ALL_SERVICES }, serviceNameRules] }),
});
const endpoints = Type.Record(Type.String(), Type.String(), {
  description: 'URL by channel, in place of all that were set before',
  ...documented({
    maxProperties: CHANNELS_MAX,
    propertyNames: { ...channelRules, ...memberRules },
    additionalProperties: named('HttpUrl'),
  }),
});

export const ConfigBody = Type.Object({
  service_name: Type.Optional(Scope),
  endpoints,
  secret: Type.Optional(
    Type.String({
      minLength: 16,
      maxLength: 1024,
      writeOnly: true,
      description: 'The new secret, which proves the call as well where it is the stored one. Absent: stays as it is',
    }),
  ),
  webhook_secret: Type.Optional(
    Type.String({
      maxLength: 1024,
      writeOnly: true,
      description: 'The secret that is stored now, as a proof; refused where none is',
    }),
  ),
});

export const ConfigQuery = Type.Object({ service_name: Type.Optional(Scope) });

export const ConfiguredResponse = Type.Object({ status: Type.Literal('configured'), message: Message });

export const ConfigResponse = Type.Object({
  service_name: Scope,
  endpoints,
  configured_at: Type.Optional(Timestamp),
  signed: Type.Boolean({
    description:
      'Whether calls must be signed: a secret is stored for the service, or for all. Otherwise signatures are not checked',
  }),
});

/** A global configuration that was never made is empty. The secret is not shown. */
export function configRecord({ settings, isSigned: signed }: DescribedConfig): Static<typeof ConfigResponse> {
  if (settings === undefined) return { service_name: ALL_SERVICES, endpoints: {}, signed };
  return {
    signed,
    service_name: settings.serviceName,
    endpoints: Object.fromEntries(settings.endpoints),
    configured_at: timestamp(settings.configuredAt),
  };
}
