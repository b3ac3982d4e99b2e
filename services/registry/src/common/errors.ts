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
  LET_IN_FOR_ANOTHER:
    'The gateway let the request in for another service; the registry is reached under the name registry',
  INSUFFICIENT_SCOPE: 'The token lacks the scope of the operation; docs/scopes.md has the table',
  NAME_OWNED_BY_ANOTHER: 'The name belongs to another subject',
  STORE_UNAVAILABLE: 'The Kubernetes API cannot be reached',
  STORE_FULL: 'The cluster holds as many of these objects as its ResourceQuota allows',
  TOO_MANY_REGISTRATIONS: 'The caller has as many registrations as one subject may have',
  CONTENTION: 'Others keep changing the same object; try again',
  OVERLOADED: 'Too much of this work is under way or waits at this replica; try again',
  STOPPING: 'The replica is stopping; connect again',
  GATEWAY_KEYS_UNAVAILABLE: 'The keys by which callers from the gateway are known cannot be fetched',
  TOO_MANY_STREAMS: 'This replica has as many open event streams as it can serve',
  STREAM_SHARE_TAKEN:
    'The caller, or all clients of gateways together, have as many open event streams at this replica as they may have',
  DATABASE_UNAVAILABLE: 'The database cannot be reached',
  SIGNATURE_REQUIRED:
    'The service has no webhook secret to sign with, and the registry asks nobody who they are. Set a secret (a WebhookConfig with a ' +
    'secretRef), turn authentication on (ROLLCALL_AUTHENTICATION=token-review), or allow it (ROLLCALL_WEBHOOK_ALLOW_UNSIGNED=true)',
  SECRET_MISSING: 'A Secret that the registry needs is missing or cannot be read',
  INVALID_SIGNATURE: 'The webhook signature or secret is missing or wrong',
  RELEASE_NOT_FOUND: 'No such version was recorded for the service',
  CHANNEL_NOT_FOUND: 'No endpoint is configured for the channel',
  CHANNEL_FULL: 'As many notifications as may wait for the channel wait for it',
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
