/** A call of the registry that did not succeed: refused by the registry, or never answered. */
export class RegistryError extends Error {
  /** HTTP status of the answer; undefined: no registry answered. */
  readonly status: number | undefined;
  /** Error type (contract 1, "Errors"), for example `Service not found`. */
  readonly error: string;
  /** Base URL of the registry that was asked last. */
  readonly server: string | undefined;

  constructor(message: string, options: RegistryErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'RegistryError';
    this.status = options.status;
    this.error = options.error;
    this.server = options.server;
  }
}

interface RegistryErrorOptions {
  readonly error: string;
  readonly status?: number;
  readonly server?: string;
  readonly cause?: unknown;
}

/**
 * The error that an answer other than 2xx stands for: in the registry's shape, or in that of the
 * gateway before it. Bodies of another shape are tolerated.
 */
export function errorFromAnswer(status: number, text: string, server: string): RegistryError {
  const body = parseObject(text);
  const coded = asObject(body?.['error']);
  const error = coded === undefined ? body?.['error'] : coded['code'];
  const message = (coded ?? body)?.['message'];
  const type = typeof error === 'string' ? error : `HTTP ${status}`;
  const fallback = typeof error === 'string' ? error : `the registry answered with status ${status}`;
  return new RegistryError(typeof message === 'string' ? message : fallback, { status, error: type, server });
}

/**
 * The error of a request that got no answer: connection refused or cut, name not resolved, time
 * limit passed.
 */
export function unreachable(server: string, cause: unknown): RegistryError {
  return new RegistryError(`${server} cannot be reached: ${innermostMessage(cause)}`, {
    error: 'Registry unreachable',
    server,
    cause,
  });
}

/** Whether no registry answered, so that the same call may succeed later. */
export function isUnreachable(error: unknown): error is RegistryError {
  return error instanceof RegistryError && error.status === undefined;
}

/**
 * Whether the registry says that the service is not registered: 404, or 400 to a heartbeat
 * (contract 1, "Errors").
 */
export function isServiceNotFound(error: unknown): error is RegistryError {
  return error instanceof RegistryError && (error.status === 404 || error.error === 'Service not found');
}

/** A JSON object, or undefined where the text is something else. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function asObject(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

/** fetch reports "fetch failed" and hides the reason in its cause. */
function innermostMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof Error) return innermostMessage(error.cause);
  if (error.message !== '') return error.message;
  return 'code' in error ? String(error.code) : error.name;
}
