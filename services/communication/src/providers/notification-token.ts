import { isSameSecret } from '@rollcall/platform/webhooks/signatures.ts';

/**
 * Whether a notification came to the URL that only the provider was told, with a `token` in its query.
 * It stands for a signature where a provider makes none.
 */
export function hasToken(url: string, token: string): boolean {
  const given = new URL(url).searchParams.get('token');
  return given !== null && isSameSecret(token, given);
}
