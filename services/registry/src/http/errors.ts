import { answerOf, type HttpError } from '@rollcall/platform/http/errors.ts';
import { isQuotaExceeded, isQuotaUncounted, isUnavailable } from '@rollcall/platform/kube/errors.ts';
import { isDatabaseUnavailable } from '@rollcall/platform/postgres/pool.ts';
import { RegistryError } from '../common/errors.ts';

/** The error of the domain that an error is, or that a store which does not answer means; undefined for anything else. */
export function domainError(error: unknown): RegistryError | undefined {
  if (error instanceof RegistryError) return error;
  if (isQuotaExceeded(error)) return new RegistryError('STORE_FULL');
  if (isQuotaUncounted(error)) return new RegistryError('STORE_UNCOUNTED');
  if (isUnavailable(error)) return new RegistryError('STORE_UNAVAILABLE');
  return isDatabaseUnavailable(error) ? new RegistryError('DATABASE_UNAVAILABLE') : undefined;
}

/** The HTTP answer to a {@link domainError}; undefined for anything else. */
export function mapError(failure: unknown): HttpError | undefined {
  const known = domainError(failure);
  return known && answerOf(known);
}
