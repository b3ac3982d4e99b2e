/**
 * The `Status` object that the API server answers a failed request with (Kubernetes API
 * conventions, "Response Status Kind").
 */
export interface ApiStatus {
  readonly kind?: string;
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly retryAfterSeconds?: number; readonly causes?: readonly StatusCause[] };
}

interface StatusCause {
  readonly reason?: string;
  readonly field?: string;
  readonly message?: string;
}

/** The API server refused a request. */
export class KubeApiError extends Error {
  /** HTTP status. */
  readonly code: number;
  /** Machine-readable reason, such as `NotFound`, `Conflict`, `AlreadyExists`, `Expired`. */
  readonly reason: string;
  readonly status: ApiStatus;
  /** How long the server asked to wait before another try. */
  readonly retryAfterMs: number | undefined;

  constructor(code: number, status: ApiStatus, retryAfterMs?: number) {
    super(status.message ?? `the API server answered ${code}`);
    this.name = 'KubeApiError';
    this.code = code;
    this.reason = status.reason ?? '';
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * The API server could not be reached, or did not answer in time. Whether a write took effect is
 * unknown.
 */
export class KubeUnreachableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'KubeUnreachableError';
  }
}

/** @param reason why, for people. */
export function unreachable(reason: string, cause?: unknown): KubeUnreachableError {
  return new KubeUnreachableError(
    `The API server could not be reached: ${reason}`,
    cause === undefined ? {} : { cause },
  );
}

export function isNotFound(error: unknown): boolean {
  return error instanceof KubeApiError && error.code === 404;
}

/**
 * A precondition (uid, resourceVersion) or a field manager's ownership did not hold. To a patch
 * with another uid the API server says that uids cannot be changed (422), where it says 409 to a
 * delete.
 */
export function isConflict(error: unknown): boolean {
  if (!(error instanceof KubeApiError)) return false;
  return error.code === 409 ? error.reason !== 'AlreadyExists' : isUidMismatch(error);
}

/**
 * A field that an apply without `force` wanted belongs to another manager: trying again is
 * pointless. Also a conflict.
 */
export function isFieldConflict(error: unknown): boolean {
  if (!(error instanceof KubeApiError) || error.code !== 409) return false;
  return error.status.details?.causes?.some(({ reason }) => reason === 'FieldManagerConflict') === true;
}

function isUidMismatch({ code, status }: KubeApiError): boolean {
  return code === 422 && status.details?.causes?.some(({ field }) => field === 'metadata.uid') === true;
}

export function isAlreadyExists(error: unknown): boolean {
  return error instanceof KubeApiError && error.code === 409 && error.reason === 'AlreadyExists';
}

/**
 * Who asks may not, or what is asked for may not be: by the API server's rules, or those of who
 * reviews for it.
 */
export function isForbidden(error: unknown): boolean {
  return error instanceof KubeApiError && error.code === 403;
}

/**
 * The object is one more than a ResourceQuota of its namespace allows. The API server has no reason
 * of its own for that.
 */
export function isQuotaExceeded(error: unknown): boolean {
  return isForbidden(error) && error instanceof KubeApiError && /\bexceeded quota\b/.test(error.message);
}

/** A ResourceQuota of its namespace limits the object's kind, and nobody has counted that yet. */
export function isQuotaUncounted(error: unknown): boolean {
  return isForbidden(error) && error instanceof KubeApiError && /\bstatus unknown for quota\b/.test(error.message);
}

/** The resource version is too old to watch or page from: list again. */
export function isGone(error: unknown): boolean {
  return error instanceof KubeApiError && (error.code === 410 || error.reason === 'Expired');
}

/** The API server rejected the object itself: trying again without a change is pointless. */
export function isInvalid(error: unknown): boolean {
  return error instanceof KubeApiError && (error.code === 400 || error.code === 422) && !isUidMismatch(error);
}

/** The API server is unavailable, overloaded or starting: the same request may succeed later. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof KubeUnreachableError || isQuotaUncounted(error)) return true;
  return error instanceof KubeApiError && (error.code === 429 || error.code >= 500);
}
