import { toServiceError } from '../common-errors.ts';
import { answerOf, type HttpError } from './errors.ts';

/** The answer to an error of a service's catalogue, or of its database; for `mapError` of a server. */
export function answerToServiceError(error: unknown): HttpError | undefined {
  const known = toServiceError(error);
  return known === undefined ? undefined : answerOf(known);
}
