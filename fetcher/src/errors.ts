import { CodedError } from '@rollcall/platform/errors.ts';

/** What the exit code means to the operator; 0 is done. */
export const exitCodes = { FAILED: 1, USAGE: 2, CHECKSUM_MISMATCH: 3, ADDRESS_REFUSED: 4, TOO_LARGE: 5 } as const;

/**
 * Why an artifact was not fetched. Messages hold no credentials and no query of a URL: they end in
 * the pod's status.
 */
export class FetchError extends CodedError<keyof typeof exitCodes> {}

/** The file system failed; trying again does not help. */
export function localError(what: string, cause: unknown): FetchError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
  const reason = reasons[code] ?? code;
  return new FetchError('FAILED', `${what}: ${reason}`, { cause });
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  ENOENT: 'no such file or directory',
  ENOSPC: 'no space left',
  ENOTDIR: 'not in a directory',
  EDQUOT: 'no space left',
  EROFS: 'the file system is read-only',
};
