/**
 * The token of an Authorization header (RFC 6750, section 2.1), or of the metadata of that name;
 * undefined: there is none.
 */
export function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^Bearer +([\w.~+/=-]+)$/i.exec(authorization)?.[1];
}
