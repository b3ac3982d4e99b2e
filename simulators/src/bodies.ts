/** A body as people read it, and rules match it: that of a form without its escapes. */
export function readable(body: Buffer | string, contentType: string | undefined): string {
  const text = typeof body === 'string' ? body : body.toString('utf8');
  if (contentType?.startsWith('application/x-www-form-urlencoded') !== true) return text;
  return [...new URLSearchParams(text)].map(([name, value]) => `${name}=${value}`).join('&');
}
