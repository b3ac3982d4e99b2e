import { errors } from 'jose';

/** Whether a token could not be checked because its issuer's keys cannot be had: it may well be good. */
export function isKeySetUnavailable(error: unknown): boolean {
  // What went wrong while fetching is told by the bare base class.
  return (
    error instanceof errors.JWKSTimeout || (error instanceof errors.JOSEError && error.code === 'ERR_JOSE_GENERIC')
  );
}
