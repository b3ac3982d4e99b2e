import type { App } from '@rollcall/platform/http/server.ts';
import type { KeyStore } from '../identity/key-store.ts';

/** Less than a new key is published before it signs. */
const KEPT_SECONDS = 300;

/**
 * `GET /.well-known/jwks.json`: the public keys of access tokens and identities (RFC 7517, section
 * 5).
 */
export function keysRoute(app: App, keys: KeyStore): void {
  app.get('/.well-known/jwks.json', (_request, reply) =>
    reply
      .header('cache-control', `public, max-age=${KEPT_SECONDS}`)
      .type('application/jwk-set+json')
      .send(JSON.stringify(keys.published())),
  );
}
