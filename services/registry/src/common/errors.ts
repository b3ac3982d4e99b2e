import { type ErrorCatalogue, ServiceError } from '@rollcall/platform/errors.ts';

/**
 * Everything that the registry refuses or cannot do. The types of errors are those of contract 1,
 * "Errors"; where that is silent, what HTTP says.
 */
export const errorCatalogue = {
  INVALID_REQUEST: {
    status: 400,
    error: 'Invalid request',
    message: 'The request is not valid; the OpenAPI document describes valid ones',
  },
  INVALID_SERVICE_NAME: { status: 400, error: 'Invalid service name', message: 'The service name is not valid' },
  INVALID_SERVICE_URL: { status: 400, error: 'Invalid service URL', message: 'The service URL is not valid' },
  INVALID_INSTANCE_ID: {
    status: 400,
    error: 'Invalid instance id',
    message: 'The id of the instance is not valid; use 1 to 63 lower-case letters, digits and hyphens within',
  },
  SERVICE_NOT_FOUND: {
    status: 404,
    error: 'Service not found',
    message: 'The service is not in the registry; register it, or look its name up in the list',
  },
  MANAGED_ELSEWHERE: {
    status: 400,
    error: 'Service is managed elsewhere',
    message: 'The registration is declared in Kubernetes and cannot be changed over HTTP; change it there',
    grpc: 'FAILED_PRECONDITION',
  },
  UNAUTHENTICATED: {
    status: 401,
    error: 'Unauthenticated',
    message: 'A valid bearer token is required; a pod has it in a projected volume (docs/services.md)',
  },
  ADMITTED_FOR_ANOTHER: {
    status: 403,
    error: 'Forbidden',
    message: 'The gateway admitted the request for another service; call the registry under /api/v1/registry',
  },
  INSUFFICIENT_SCOPE: {
    status: 403,
    error: 'Forbidden',
    message: 'The token lacks the scope of the operation; docs/scopes.md has the table',
  },
  NAME_OWNED_BY_ANOTHER: {
    status: 403,
    error: 'Forbidden',
    message: 'The name belongs to another subject; choose another one, or have that subject unregister it',
  },
  STORE_UNAVAILABLE: {
    status: 503,
    error: 'Store is not available',
    message: 'The Kubernetes API cannot be reached; try again',
  },
  STORE_FULL: {
    status: 507,
    error: 'Store is full',
    message: 'The ResourceQuota of these objects is used up; delete some, or raise it',
  },
  STORE_UNCOUNTED: {
    status: 503,
    error: 'Store is not counted',
    message: 'Kubernetes has not counted the ResourceQuota of these objects yet; try again',
  },
  TOO_MANY_REGISTRATIONS: {
    status: 403,
    error: 'Too many registrations',
    message: 'The caller has as many registrations as one subject may have; unregister some',
    grpc: 'RESOURCE_EXHAUSTED',
  },
  CONTENTION: {
    status: 409,
    error: 'Contention',
    message: 'Others keep changing the same object; try again',
    passes: true,
  },
  OVERLOADED: { status: 503, error: 'Overloaded', message: 'Too much of this work waits at this replica; try again' },
  STOPPING: { status: 503, error: 'Stopping', message: 'The replica is stopping; connect again' },
  GATEWAY_KEYS_UNAVAILABLE: {
    status: 503,
    error: "Gateway's keys are not available",
    message: "The gateway's public keys cannot be fetched; try again",
  },
  TOO_MANY_STREAMS: {
    status: 503,
    error: 'Too many streams',
    message: 'This replica serves no more event streams; try another one',
  },
  STREAM_SHARE_USED: {
    status: 429,
    error: 'Too many streams',
    message:
      'The caller, or all clients of gateways together, have too many open event streams at this replica; close some',
  },
  DATABASE_UNAVAILABLE: {
    status: 503,
    error: 'Store is not available',
    message: 'The database cannot be reached; try again',
  },
  SIGNATURE_REQUIRED: {
    status: 401,
    error: 'Signature required',
    message:
      'The service has no webhook secret to sign with, and the registry knows no callers. Set a secret (a WebhookConfig with a ' +
      'secretRef), turn authentication on (ROLLCALL_AUTHENTICATION=token-review), or allow it (ROLLCALL_WEBHOOK_ALLOW_UNSIGNED=true)',
  },
  SECRET_MISSING: {
    status: 503,
    error: 'Secret is missing',
    message: 'A Secret that the registry needs is missing or cannot be read; create it, or let the registry read it',
  },
  INVALID_SIGNATURE: {
    status: 401,
    error: 'Invalid signature',
    message: 'The webhook signature or secret is wrong; docs/delivery.md has what to sign',
  },
  RELEASE_NOT_FOUND: {
    status: 404,
    error: 'Release not found',
    message: 'No such version was recorded for the service; its history lists those that were',
  },
  CHANNEL_NOT_FOUND: {
    status: 404,
    error: 'Channel not found',
    message: 'No endpoint is configured for the channel; configure one, or choose another channel',
  },
  CHANNEL_FULL: {
    status: 503,
    error: 'Channel is full',
    message: 'Too many notifications wait for the channel; try again when some are delivered',
  },
  CONFIG_NOT_FOUND: {
    status: 404,
    error: 'Configuration not found',
    message: 'No webhook configuration is stored; POST /api/v1/webhooks/config stores one',
  },
  JOB_CONFLICT: { status: 409, error: 'Job conflict', message: 'Another job with this id exists; choose another id' },
  JOB_NOT_FOUND: {
    status: 404,
    error: 'Job not found',
    message: 'There is no such job, neither running nor in the history; the list of jobs has their ids',
  },
  JOB_FINISHED: { status: 409, error: 'Job has finished', message: 'The job has finished; start another one' },
  JOB_NOT_PAUSED: {
    status: 409,
    error: 'Job is not paused',
    message: 'The job is not paused; only one that is can be promoted',
  },
  DELIVERY_NOT_FOUND: {
    status: 404,
    error: 'Delivery not found',
    message: 'There is no such delivery of a notification; the list of deliveries has their ids',
  },
} as const satisfies ErrorCatalogue;

export type ErrorCode = keyof typeof errorCatalogue;

/** What every call may meet that writes an object of Kubernetes. */
export const WRITE_REFUSALS = ['OVERLOADED', 'STORE_FULL', 'STORE_UNCOUNTED'] as const satisfies readonly ErrorCode[];

/** What may keep a caller from writing what is registered under a name. */
export const REGISTRATION_REFUSALS = [
  'INVALID_SERVICE_NAME',
  'INVALID_INSTANCE_ID',
  'MANAGED_ELSEWHERE',
  'NAME_OWNED_BY_ANOTHER',
  'CONTENTION',
  ...WRITE_REFUSALS,
] as const satisfies readonly ErrorCode[];

/**
 * An error of the registry's domain. The message is for the caller of the API: it must not hold
 * secrets.
 */
export class RegistryError extends ServiceError<ErrorCode> {
  constructor(code: ErrorCode, message?: string, options?: ErrorOptions) {
    super(code, errorCatalogue[code], { ...options, message });
    this.name = 'RegistryError';
  }
}

export function hasCode(error: unknown, code: ErrorCode): boolean {
  return error instanceof RegistryError && error.code === code;
}
