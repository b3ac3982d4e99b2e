import { CodedError } from '@rollcall/platform/errors.ts';

/**
 * Everything that the registry refuses or cannot do: the status in HTTP, the error type of the
 * contract's body (contract 1, "Errors"; where that is silent, what HTTP says), and the sentence
 * that says so when nothing more precise is known.
 */
export const errorCatalogue = {
  INVALID_REQUEST: [400, 'Invalid request', 'The request is not valid'],
  INVALID_SERVICE_NAME: [400, 'Invalid service name', 'The service name is not valid'],
  INVALID_SERVICE_URL: [400, 'Invalid service URL', 'The service URL is not valid'],
  SERVICE_NOT_FOUND: [404, 'Service not found', 'The service is not in the registry'],
  MANAGED_ELSEWHERE: [
    400,
    'Service is managed elsewhere',
    'The registration is declared in Kubernetes and cannot be changed over HTTP',
  ],
  UNAUTHENTICATED: [
    401,
    'Unauthenticated',
    'A valid bearer token is required; a pod has it in a projected volume (docs/services.md)',
  ],
  LET_IN_FOR_ANOTHER: [
    403,
    'Forbidden',
    'The gateway admitted the request for another service; call the registry under /api/v1/registry',
  ],
  INSUFFICIENT_SCOPE: [403, 'Forbidden', 'The token lacks the scope of the operation; docs/scopes.md has the table'],
  NAME_OWNED_BY_ANOTHER: [403, 'Forbidden', 'The name belongs to another subject'],
  STORE_UNAVAILABLE: [503, 'Store is not available', 'The Kubernetes API cannot be reached; try again'],
  STORE_FULL: [507, 'Store is full', 'The ResourceQuota of these objects is used up; delete some, or raise it'],
  TOO_MANY_REGISTRATIONS: [
    403,
    'Too many registrations',
    'The caller has as many registrations as one subject may have; unregister some',
  ],
  CONTENTION: [409, 'Contention', 'Others keep changing the same object; try again'],
  OVERLOADED: [503, 'Overloaded', 'Too much of this work waits at this replica; try again'],
  STOPPING: [503, 'Stopping', 'The replica is stopping; connect again'],
  GATEWAY_KEYS_UNAVAILABLE: [
    503,
    "Gateway's keys are not available",
    "The gateway's public keys cannot be fetched; try again",
  ],
  TOO_MANY_STREAMS: [503, 'Too many streams', 'This replica serves no more event streams; try another one'],
  STREAM_SHARE_TAKEN: [
    429,
    'Too many streams',
    'The caller, or all clients of gateways together, have too many open event streams at this replica; close some',
  ],
  DATABASE_UNAVAILABLE: [503, 'Store is not available', 'The database cannot be reached; try again'],
  SIGNATURE_REQUIRED: [
    401,
    'Signature required',
    'The service has no webhook secret to sign with, and the registry knows no callers. Set a secret (a WebhookConfig with a ' +
      'secretRef), turn authentication on (ROLLCALL_AUTHENTICATION=token-review), or allow it (ROLLCALL_WEBHOOK_ALLOW_UNSIGNED=true)',
  ],
  SECRET_MISSING: [
    503,
    'Secret is missing',
    'A Secret that the registry needs is missing or cannot be read; create it, or let the registry read it',
  ],
  INVALID_SIGNATURE: [401, 'Invalid signature', 'The webhook signature or secret is missing or wrong'],
  RELEASE_NOT_FOUND: [404, 'Release not found', 'No such version was recorded for the service'],
  CHANNEL_NOT_FOUND: [404, 'Channel not found', 'No endpoint is configured for the channel'],
  CHANNEL_FULL: [
    503,
    'Channel is full',
    'Too many notifications wait for the channel; try again when some are delivered',
  ],
  CONFIG_NOT_FOUND: [404, 'Configuration not found', 'No webhook configuration is stored'],
  JOB_CONFLICT: [409, 'Job conflict', 'Another job with this id exists'],
  JOB_NOT_FOUND: [404, 'Job not found', 'There is no such job, neither running nor in the history'],
  JOB_FINISHED: [409, 'Job has finished', 'The job has finished'],
  JOB_NOT_PAUSED: [409, 'Job is not paused', 'The job is not paused'],
  DELIVERY_NOT_FOUND: [404, 'Delivery not found', 'There is no such delivery of a notification'],
} as const satisfies Readonly<Record<string, readonly [status: number, error: string, message: string]>>;

export type ErrorCode = keyof typeof errorCatalogue;

/**
 * An error of the registry's domain. The message is for the caller of the API: it must not hold
 * secrets.
 */
export class RegistryError extends CodedError<ErrorCode> {
  constructor(code: ErrorCode, message: string = errorCatalogue[code][2], options?: ErrorOptions) {
    super(code, message, options);
    this.name = 'RegistryError';
  }
}

export function hasCode(error: unknown, code: ErrorCode): boolean {
  return error instanceof RegistryError && error.code === code;
}
