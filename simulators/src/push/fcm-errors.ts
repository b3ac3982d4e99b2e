import type { FieldViolation } from './fcm-schema.ts';

const FCM_ERROR = 'type.googleapis.com/google.firebase.fcm.v1.FcmError';
const BAD_REQUEST = 'type.googleapis.com/google.rpc.BadRequest';

/** https://firebase.google.com/docs/reference/fcm/rest/v1/ErrorCode */
const ERRORS = {
  UNREGISTERED: { code: 404, status: 'NOT_FOUND', message: 'Requested entity was not found.' },
  SENDER_ID_MISMATCH: { code: 403, status: 'PERMISSION_DENIED', message: 'SenderId mismatch' },
  INVALID_ARGUMENT: {
    code: 400,
    status: 'INVALID_ARGUMENT',
    message: 'The registration token is not a valid FCM registration token',
  },
  QUOTA_EXCEEDED: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'Quota exceeded.' },
  UNAVAILABLE: { code: 503, status: 'UNAVAILABLE', message: 'The service is currently unavailable.' },
  INTERNAL: { code: 500, status: 'INTERNAL', message: 'Internal error encountered.' },
  THIRD_PARTY_AUTH_ERROR: {
    code: 401,
    status: 'UNAUTHENTICATED',
    message: 'Auth error from APNS or Web Push Service',
  },
} as const;

export type FcmErrorCode = keyof typeof ERRORS;

/** The codes that can become of a token. */
export const fcmErrorCodes: readonly string[] = Object.keys(ERRORS);

/** An answer that is an error. */
export interface GoogleError {
  readonly error: {
    readonly code: number;
    readonly message: string;
    readonly status: string;
    readonly details?: readonly object[];
  };
}

/** An error of FCM, with its code in the details. */
export function fcmError(errorCode: FcmErrorCode, message: string = ERRORS[errorCode].message): GoogleError {
  return { error: { ...ERRORS[errorCode], message, details: [{ '@type': FCM_ERROR, errorCode }] } };
}

/**
 * A request that does not have the right shape: without the error of FCM, so that nobody takes it
 * for a bad token.
 */
export function badRequest(fieldViolations: readonly FieldViolation[]): GoogleError {
  const message = fieldViolations.map(({ description }) => description).join('\n');
  return {
    error: {
      code: 400,
      message,
      status: 'INVALID_ARGUMENT',
      details: [{ '@type': BAD_REQUEST, fieldViolations }],
    },
  };
}

/** A request whose shape is right and whose content is not: it has both details. */
export function badContent({ field, description }: FieldViolation): GoogleError {
  const { error } = badRequest([{ field, description }]);
  const fcm = { '@type': FCM_ERROR, errorCode: 'INVALID_ARGUMENT' };
  return { error: { ...error, details: [fcm, ...(error.details ?? [])] } };
}

export function unauthenticated(): GoogleError {
  const message =
    'Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.';
  return { error: { code: 401, message, status: 'UNAUTHENTICATED' } };
}

export function permissionDenied(project: string): GoogleError {
  const message = `Permission 'cloudmessaging.messages.create' denied on resource '//cloudresourcemanager.googleapis.com/projects/${project}' (or it may not exist).`;
  return { error: { code: 403, message, status: 'PERMISSION_DENIED' } };
}

/** What is answered with a status that a fault decided. */
export function fcmErrorOfStatus(status: number): GoogleError {
  const { error } = fcmError(status === 429 ? 'QUOTA_EXCEEDED' : status === 503 ? 'UNAVAILABLE' : 'INTERNAL');
  return { error: { ...error, code: status } };
}
