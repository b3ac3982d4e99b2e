import { CodedError } from '@rollcall/platform/errors.ts';

/**
 * Everything that the registry refuses or cannot do, with the sentence that says so when nothing
 * more precise is known.
 */
export const errorCatalogue = {
  INVALID_REQUEST: 'The request is not valid',
  INVALID_SERVICE_NAME: 'The service name is not valid',
  INVALID_SERVICE_URL: 'The service URL is not valid',
  SERVICE_NOT_FOUND: 'The service is not in the registry',
  MANAGED_ELSEWHERE: 'The registration is declared in Kubernetes and cannot be changed over HTTP',
  UNAUTHENTICATED: 'A valid bearer token is required',
  LET_IN_FOR_ANOTHER: 'The gateway admitted the request for another service; call the registry under /api/v1/registry',
  INSUFFICIENT_SCOPE: 'The token lacks the scope of the operation; docs/scopes.md has the table',
  NAME_OWNED_BY_ANOTHER: 'The name belongs to another subject',
  STORE_UNAVAILABLE: 'The Kubernetes API cannot be reached; try again',
  STORE_FULL: 'The ResourceQuota of these objects is used up; delete some, or raise it',
  TOO_MANY_REGISTRATIONS: 'The caller has as many registrations as one subject may have; unregister some',
  CONTENTION: 'Others keep changing the same object; try again',
  OVERLOADED: 'Too much of this work waits at this replica; try again',
  STOPPING: 'The replica is stopping; connect again',
  GATEWAY_KEYS_UNAVAILABLE: "The gateway's public keys cannot be fetched; try again",
  TOO_MANY_STREAMS: 'This replica serves no more event streams; try another one',
  STREAM_SHARE_TAKEN:
    'The caller, or all clients of gateways together, have too many open event streams at this replica; close some',
  DATABASE_UNAVAILABLE: 'The database cannot be reached; try again',
  SIGNATURE_REQUIRED:
    'The service has no webhook secret to sign with, and the registry knows no callers. Set a secret (a WebhookConfig with a ' +
    'secretRef), turn authentication on (ROLLCALL_AUTHENTICATION=token-review), or allow it (ROLLCALL_WEBHOOK_ALLOW_UNSIGNED=true)',
  SECRET_MISSING:
    'A Secret that the registry needs is missing or cannot be read; create it, or let the registry read it',
  INVALID_SIGNATURE: 'The webhook signature or secret is missing or wrong',
  RELEASE_NOT_FOUND: 'No such version was recorded for the service',
  CHANNEL_NOT_FOUND: 'No endpoint is configured for the channel',
  CHANNEL_FULL: 'Too many notifications wait for the channel; try again when some are delivered',
  CONFIG_NOT_FOUND: 'No webhook configuration is stored',
  JOB_CONFLICT: 'Another job with this id exists',
  JOB_NOT_FOUND: 'There is no such job, neither running nor in the history',
  JOB_FINISHED: 'The job has finished',
  JOB_NOT_PAUSED: 'The job is not paused',
  DELIVERY_NOT_FOUND: 'There is no such delivery of a notification',
} as const;

export type ErrorCode = keyof typeof errorCatalogue;

/**
 * An error of the registry's domain. The message is for the caller of the API: it must not hold
 * secrets.
 */
export class RegistryError extends CodedError<ErrorCode> {
  constructor(code: ErrorCode, message: string = errorCatalogue[code], options?: ErrorOptions) {
    super(code, message, options);
    this.name = 'RegistryError';
  }
}

export function hasCode(error: unknown, code: ErrorCode): boolean {
  return error instanceof RegistryError && error.code === code;
}
