import type { IncomingHttpHeaders } from 'node:http';
import { Type } from 'typebox';

/** The schema of the headers of a route that changes what has a version. */
export const PreconditionHeaders = Type.Object({
  'if-match': Type.Optional(
    Type.String({ description: 'ETag of the version that is to be changed, against lost updates' }),
  ),
  'if-none-match': Type.Optional(Type.String({ description: '`*`: only where there is none' })),
});

/** The validator of a version (RFC 9110, section 8.8.3). */
export function etagOf(version: number): string {
  return `"${version}"`;
}

/**
 * Pure. Whether what has this version is what a caller wants to change (RFC 9110, section 13.2.2).
 *
 * @param version undefined: there is none.
 */
export function isExpected(headers: IncomingHttpHeaders, version: number | undefined): boolean {
  const etag = version === undefined ? undefined : etagOf(version);
  const { 'if-match': match, 'if-none-match': noneMatch } = headers;
  if (match !== undefined && !names(match, etag)) return false;
  return noneMatch === undefined || !names(noneMatch, etag);
}

function names(header: string, etag: string | undefined): boolean {
  if (etag === undefined) return false;
  return header === '*' || header.split(',').some((each) => each.trim() === etag);
}
