import { once } from 'node:events';
import { createServer } from 'node:http';
import { ACCESS_TOKEN_TYPE, IDENTITY_TOKEN_TYPE, identityAudience } from '@rollcall/platform/http/identity.ts';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

/** The keys of a gateway that is not there, and what it would sign. It holds for a day. */
export interface Callers extends AsyncDisposable {
  /** Of its key set. */
  readonly jwksUrl: string;
  /** For a service that is called by the gateway alone. */
  identityOf(service: string, subject: string, scope: string): Promise<string>;
  accessTokenOf(subject: string, scope: string): Promise<string>;
}

/** Starts a server of keys in this process: services ask it once in a while. */
export async function startCallers(port: number): Promise<Callers> {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const keySet = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), alg: 'ES256', kid: 'bench' }] });
  const server = createServer((_request, response) => response.end(keySet));
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const sign = (typ: string, claims: Readonly<Record<string, string>>): Promise<string> =>
    new SignJWT({ ...claims, iss: 'rollcall' })
      .setProtectedHeader({ alg: 'ES256', kid: 'bench', typ })
      .setExpirationTime('1 day')
      .sign(privateKey);
  return {
    jwksUrl: `http://127.0.0.1:${port}/`,
    identityOf: (service, subject, scope) =>
      sign(IDENTITY_TOKEN_TYPE, { sub: subject, scope, aud: identityAudience(service) }),
    accessTokenOf: (subject, scope) => sign(ACCESS_TOKEN_TYPE, { sub: subject, scope, aud: 'rollcall' }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}
