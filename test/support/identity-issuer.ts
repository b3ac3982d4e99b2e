import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ACCESS_TOKEN_TYPE, IDENTITY_TOKEN_TYPE, identityAudience } from '@rollcall/platform/http/identity.ts';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';

/** The keys of a gateway, and identities that it would sign for one service. */
export interface IdentityIssuer extends AsyncDisposable {
  readonly jwksUrl: string;
  identityOf(subject: string, scope: string): Promise<string>;
  /** An access token of the gateway. @param lasts as jose has it; an hour when absent. */
  tokenOf(subject: string, scope: string, lasts?: string): Promise<string>;
}

/** @param service the registered name. */
export async function startIdentityIssuer(service: string): Promise<IdentityIssuer> {
  const pair = await generateKeyPair('ES256');
  const keySet = JSON.stringify({ keys: [{ ...(await exportJWK(pair.publicKey)), alg: 'ES256', kid: 'one' }] });
  const server = createServer((_request, response) => response.end(keySet));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const sign = (claims: JWTPayload, typ: string, lasts = '1 hour') =>
    new SignJWT({ ...claims, iss: 'rollcall' })
      .setProtectedHeader({ alg: 'ES256', kid: 'one', typ })
      .setExpirationTime(lasts)
      .sign(pair.privateKey);
  return {
    jwksUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    identityOf: (sub, scope) => sign({ sub, scope, aud: identityAudience(service) }, IDENTITY_TOKEN_TYPE),
    tokenOf: (sub, scope, lasts) => sign({ sub, scope, aud: 'rollcall' }, ACCESS_TOKEN_TYPE, lasts),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}
