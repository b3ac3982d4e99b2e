import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from '@rollcall/local/ports.ts';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { Agent, request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { asClient, startFederation } from '../federation/federation-service.ts';
import { createClient, startBackend, startGatewayProcess } from '../gateway/gateway.ts';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';

const ISSUER = 'https://people.example';
const WAIT = { timeout: 60_000, interval: 500 };
const CALLERS = 10_000;

function kept<T extends AsyncDisposable>(started: T): T {
  onTestFinished(() => started[Symbol.asyncDispose]());
  return started;
}

/** A service that says who calls it, a moment later. */
async function tellSubject(asked: IncomingMessage, response: ServerResponse): Promise<void> {
  const isSchema = (await text(asked)).includes('_service');
  if (!isSchema) await delay(Math.random() * 100);
  const data = isSchema
    ? { _service: { sdl: 'type Query { own: String }' } }
    : { own: String(asked.headers['x-rollcall-subject']) };
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ data }));
}

/** People whom somebody else signs in. */
async function startIssuer() {
  const pair = await generateKeyPair('ES256');
  const keySet = JSON.stringify({ keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'one', alg: 'ES256' }] });
  const { url } = kept(await startBackend((_request, response) => void response.end(keySet)));
  const issuers = [
    { issuer: ISSUER, audience: 'rollcall', jwksUrl: url, algorithms: ['ES256'], defaultTier: 'premium' },
  ];
  const tokenOf = (subject: string) =>
    new SignJWT({ sub: subject, iss: ISSUER, aud: 'rollcall' })
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .setExpirationTime('1 hour')
      .sign(pair.privateKey);
  return { settings: { ROLLCALL_EXTERNAL_ISSUERS: JSON.stringify(issuers) }, tokenOf };
}

const answerTo = (subject: string) => ({ data: { own: encodeURIComponent(`${ISSUER}#${subject}`) } });

test('of ten thousand people at once each gets what is its own', async () => {
  const namespace = await createNamespace('callers');
  const { url: databaseUrl } = kept(await createDatabase());
  const registry = kept(await startRegistry({ namespace: namespace.name, databaseUrl }));
  const issuer = await startIssuer();
  const gateway = kept(await startGatewayProcess({ namespace, registry: registry.url, settings: issuer.settings }));
  const [port = 0] = await freePorts(1);
  await startFederation({
    ROLLCALL_GATEWAY_KEYS_URL: `${gateway.url}/.well-known/jwks.json`,
    ROLLCALL_REGISTRY_URLS: registry.url,
    ROLLCALL_SERVICE_URL: `http://127.0.0.1:${port}`,
    ROLLCALL_PORT: String(port),
    ROLLCALL_SUBGRAPH_CALLS: '1000',
    ...(await asClient(await createClient(namespace, { id: 'federation', scopes: ['identities:exchange'] }))),
  });
  const own = kept(await startBackend((asked, response) => void tellSubject(asked, response)));
  const capabilities = ['graphql'];
  await registry.call('POST', '/services/register', { service_name: 'own', service_url: own.url, capabilities });

  // All are asked for at once; a gateway lets a service have no more requests under way.
  const dispatcher = new Agent({ connections: 500, connect: { timeout: 60_000 } });
  onTestFinished(() => dispatcher.destroy());
  async function ask(subject: string, token?: string): Promise<unknown> {
    const response = await request(`${gateway.url}/api/graphql`, {
      dispatcher,
      method: 'POST',
      headers: {
        authorization: `Bearer ${token ?? (await issuer.tokenOf(subject))}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ query: '{ own }' }),
    });
    return response.body.json();
  }
  await expect.poll(() => ask('first'), WAIT).toEqual(answerTo('first'));
  const people = await Promise.all(
    Array.from({ length: CALLERS }, async (_, index) => ({
      id: `person-${index}`,
      token: await issuer.tokenOf(`person-${index}`),
    })),
  );
  const answers = await Promise.all(people.map(({ id, token }) => ask(id, token)));
  const wrong = people.flatMap(({ id }, index) =>
    JSON.stringify(answers[index]) === JSON.stringify(answerTo(id)) ? [] : [{ id, answer: answers[index] }],
  );
  expect(wrong.slice(0, 5)).toEqual([]);
});
