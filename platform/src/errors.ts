/**
 * An error with a stable code from its package's catalogue. Domain functions throw codes; only the
 * edge (HTTP, CLI) knows what a code means there.
 */
export class CodedError<Code extends string = string> extends Error {
  readonly code: Code;

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CodedError';
    this.code = code;
  }
}

/** What a thrown value says, whatever was thrown. */
export function errorMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Node reports a host of several addresses, all of which refused, without a message of its own.
  if (error.message === '' && error instanceof AggregateError) return error.errors.map(errorMessage).join(', ');
  return error.message;
}
