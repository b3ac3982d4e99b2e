import { type CodedError, ServiceError } from '@rollcall/platform/errors.ts';

/** Why a part of a request is refused. */
export interface Refusal {
  /** Of the request, such as `currency` or `items/2`. */
  readonly field: string;
  readonly error: ServiceError;
}

/**
 * All that is refused, as one error: its code and message are the first one's. `details` has those
 * of all, and in `fields` each with its path, code and message.
 *
 * @param root what paths begin with: `body`, or `input` of a mutation.
 * @throws ServiceError where there is one.
 */
export function refuseAll(refusals: readonly Refusal[], root: string): void {
  const [first] = refusals;
  if (first === undefined) return;
  const { code, kind, message } = first.error;
  const fields = refusals.map(({ field, error }) => ({ path: `${root}/${field}`, ...wordsOf(error) }));
  const details = Object.assign({}, ...refusals.map(({ error }) => error.details).toReversed(), { fields });
  throw new ServiceError(code, kind, { message, details });
}

/** @throws ServiceError the first one, where what is refused is of no request, or of no field of it. */
export function refuseFirst([first]: readonly Refusal[]): void {
  if (first !== undefined) throw first.error;
}

function wordsOf({ code, message }: CodedError) {
  return { code, message };
}
