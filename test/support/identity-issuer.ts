import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { IDENTITY_TOKEN_TYPE, identityAudience } from '@rollcall/platform/http/identity.ts';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

/** The keys of a gateway, and identities that it would sign for one service. */
export interface IdentityIssuer extends AsyncDisposable {
  readonly jwksUrl: string;
  identityOf(subject: string, scope: string): Promise<string>;
}

/** @param service the registered name. */
export async function startIdentityIssuer(service: string): Promise<IdentityIssuer> {
  const pair = await generateKeyPair('ES256');
  const keySet = JSON.stringify({ keys: [{ ...(await exportJWK(pair.publicKey)), alg: 'ES256', kid: 'one' }] });
  const server = createServer((_request, response) => response.end(keySet));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    jwksUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    identityOf: (subject, scope) =>
      new SignJWT({ sub: subject, scope, aud: identityAudience(service), iss: 'rollcall' })
        .setProtectedHeader({ alg: 'ES256', kid: 'one', typ: IDENTITY_TOKEN_TYPE })
        .setExpirationTime('1 hour')
        .sign(pair.privateKey),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}
