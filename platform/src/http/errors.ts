/** The body of every error answer of the registry API (contract 1, "Errors"). */
export interface ErrorBody {
  /** Error type: constant for a kind of error. */
  readonly error: string;
  /** What is wrong with this request. */
  readonly message: string;
}

/** An error that already knows its answer. */
export class HttpError extends Error {
  readonly statusCode: number;
  readonly error: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(statusCode: number, error: string, options: { message: string; headers?: Record<string, string> }) {
    super(options.message);
    this.name = 'HttpError';
    this.statusCode = statusCode;
    this.error = error;
    this.headers = options.headers ?? {};
  }
}
