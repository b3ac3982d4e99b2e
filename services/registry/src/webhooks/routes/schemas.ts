import { type Static, Type } from 'typebox';
import { ServiceName, Timestamp, timestamp } from '../../http/schemas.ts';
import type { WebhookSettings } from '../../releases/domain/release.ts';
import { ALL_SERVICES } from '../domain/webhook-configs.ts';

const Version = Type.String({
  description: "1 to 128 characters without white space, control characters and '/', not '.' or '..'",
});
export const Secret = Type.String({ maxLength: 1024, writeOnly: true });
const Message = Type.String({ description: 'For people; names the service' });

const release = {
  service_name: ServiceName,
  version: Version,
  artifact_url: Type.String({ description: 'A container image reference, or the https URL of a binary' }),
  artifact_type: Type.Optional(Type.Enum(['image', 'binary'], { default: 'image' })),
  checksum: Type.Optional(
    Type.String({ description: '<algorithm>:<hex digest>, sha256 or sha512; required for a binary' }),
  ),
  webhook_secret: Type.Optional(Secret),
};

/** The headers are documented here; Fastify hands them over as they are. */
export const SignatureHeaders = Type.Object({
  'x-webhook-signature': Type.Optional(
    Type.String({
      description: 'sha256=<hex HMAC-SHA256 of the raw body> with the configured secret; several by spaces',
    }),
  ),
  'x-webhook-timestamp': Type.Optional(
    Type.String({
      description: 'Unix seconds. With it, X-Webhook-Signature is of `timestamp.body`, and the call good once',
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

export const UpdateBody = Type.Object(release);

export const AcceptedResponse = Type.Object({
  status: Type.Literal('accepted'),
  message: Message,
  service_name: Type.String(),
  version: Type.String(),
  job_id: Type.Optional(Type.String({ description: 'Of the job that autoDeploy of the policy made of it' })),
});

export const CheckUpdatesBody = Type.Object({ service_name: ServiceName });

export const CheckUpdatesResponse = Type.Object({
  status: Type.Literal('checked'),
  service_name: Type.String(),
  current_version: Type.String({ description: 'Empty when it is not known' }),
  latest_version: Type.String(),
  update_available: Type.Boolean(),
});

export const DeployBody = Type.Object({
  ...release,
  strategy: Type.Optional(
    Type.Enum(['rolling', 'blue-green', 'canary'], {
      description: 'Absent: as the DeliveryPolicy of the service says, else rolling',
    }),
  ),
});

export const RollbackBody = Type.Object({
  service_name: ServiceName,
  version: Version,
  webhook_secret: Type.Optional(Secret),
});

export const JobResponse = Type.Object({
  status: Type.Literal('accepted'),
  job_id: Type.String({ description: '(deploy|rollback)-<service_name>-<version>-<unix seconds>' }),
  message: Message,
  service_name: Type.String(),
  version: Type.String(),
});

export const NotifyBody = Type.Object({
  service_name: ServiceName,
  channel: Type.String({ description: 'A channel of the webhook configuration of the service, or of the global one' }),
  message: Type.String({ description: 'At most 16 KiB' }),
  severity: Type.Optional(Type.Enum(['info', 'warning', 'error', 'critical'], { default: 'info' })),
});

export const NotifyResponse = Type.Object({ status: Type.Literal('sent'), message: Message });

/** `*` stands for all services. */
const Scope = Type.String({ description: "Service name; absent or '*': the global configuration" });

export const ConfigBody = Type.Object({
  service_name: Type.Optional(Scope),
  endpoints: Type.Record(Type.String(), Type.String(), {
    description: 'URL by channel, in place of all that were set before',
  }),
  secret: Type.Optional(
    Type.String({ minLength: 16, maxLength: 1024, writeOnly: true, description: 'Absent: stays as it is' }),
  ),
  webhook_secret: Type.Optional(Secret),
});

export const ConfigQuery = Type.Object({ service_name: Type.Optional(Scope) });

export const ConfiguredResponse = Type.Object({ status: Type.Literal('configured'), message: Message });

export const ConfigResponse = Type.Object({
  service_name: Type.String(),
  endpoints: Type.Record(Type.String(), Type.String()),
  configured_at: Type.Optional(Timestamp),
});

/** A global configuration that was never made is empty. The secret is not shown. */
export function configRecord(settings: WebhookSettings | undefined): Static<typeof ConfigResponse> {
  if (settings === undefined) return { service_name: ALL_SERVICES, endpoints: {} };
  return {
    service_name: settings.serviceName,
    endpoints: Object.fromEntries(settings.endpoints),
    configured_at: timestamp(settings.configuredAt),
  };
}
