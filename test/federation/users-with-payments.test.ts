import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import mercuriusGateway from '@mercuriusjs/gateway';
import { freePorts } from '@rollcall/local/ports.ts';
import { startService } from '@rollcall/local/services.ts';
import { fastify } from 'fastify';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createClient, startGateway, tokenOf } from '../gateway/gateway.ts';
import { startPayment, tea } from '../payment/payment-service.ts';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import { asClient, startFederation } from './federation-service.ts';

const WAIT = { timeout: 60_000 };
const SCOPES = ['payments:write', 'payments:read', 'billing:write'];

function kept<T extends AsyncDisposable>(started: T): T {
  onTestFinished(() => started[Symbol.asyncDispose]());
  return started;
}

const asCaller = ({ authorization }: IncomingHttpHeaders) => (authorization === undefined ? {} : { authorization });

/** A gateway of Federation 1, which passes tokens on. */
async function startMercurius(services: Readonly<Record<string, string>>): Promise<string> {
  const app = fastify();
  onTestFinished(() => app.close());
  await app.register(mercuriusGateway.default, {
    gateway: {
      services: Object.entries(services).map(([name, url]) => ({
        name,
        url: `${url}/api/graphql`,
        mandatory: true,
        rewriteHeaders: asCaller,
      })),
    },
  });
  return `${await app.listen({ port: 0, host: '127.0.0.1' })}/graphql`;
}

test('users of the sample service have their payments, which nobody else sees', async () => {
  const namespace = await createNamespace('users');
  const { url: databaseUrl } = kept(await createDatabase());
  const registry = kept(await startRegistry({ namespace: namespace.name, databaseUrl }));
  const gateway = kept(await startGateway({ namespace, registry: registry.url }));
  const keys = { ROLLCALL_GATEWAY_KEYS_URL: `${gateway.url}/.well-known/jwks.json` };
  const payment = kept(await startPayment(keys));
  const [port = 0] = await freePorts(1);
  await startFederation({
    ...keys,
    ROLLCALL_REGISTRY_URLS: registry.url,
    ROLLCALL_SERVICE_URL: `http://127.0.0.1:${port}`,
    ROLLCALL_PORT: String(port),
    ...(await asClient(await createClient(namespace, { id: 'federation', scopes: ['identities:exchange'] }))),
  });
  kept(
    await startService(
      { name: 'users', script: 'local/src/sample-users.ts', args: ['users', '0', registry.url] },
      { logDirectory: inject('temporaryDirectory'), env: { PATH: process.env['PATH'] } },
    ).then((sample) => ({ [Symbol.asyncDispose]: () => sample.stop() })),
  );
  await registry.call('POST', '/services/register', {
    service_name: 'payment',
    service_url: payment.service.url,
    capabilities: ['graphql'],
  });

  async function callerOf(id: string) {
    const token = await tokenOf(gateway, await createClient(namespace, { id, scopes: SCOPES }));
    return async (url: string, body: object) => {
      const answer = await fetch(url, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'idempotency-key': randomUUID(),
        },
        body: JSON.stringify(body),
      });
      return answer.json();
    };
  }
  const [shop, other] = [await callerOf('shop'), await callerOf('other')];
  const graph = `${gateway.url}/api/graphql`;
  const QUERY = '{ users { name payments { amount status } } }';
  const nobodyPaid = [
    { name: 'Ada', payments: [] },
    { name: 'Grace', payments: [] },
  ];
  await expect.poll(() => shop(graph, { query: QUERY }), WAIT).toEqual({ data: { users: nobodyPaid } });

  const customer: unknown = await shop(`${payment.service.url}/api/v1/customers`, { email: tea.customerEmail });
  expect(customer).toMatchObject({ id: expect.any(String) });
  const { id } = customer as { readonly id: string };
  const added = await shop(graph, {
    query: 'mutation ($id: ID!) { addUser(id: $id, name: "Thandi") { payments { id } } }',
    variables: { id },
  });
  expect(added).toEqual({ data: { addUser: { payments: [] } } });
  const made = await shop(graph, {
    query: 'mutation ($input: CreatePaymentInput!) { createPayment(input: $input) { amount } }',
    variables: { input: { ...tea, provider: 'sandbox', customerId: id } },
  });
  expect(made).toEqual({ data: { createPayment: { amount: tea.amount } } });
  const payments = [{ amount: tea.amount, status: 'pending' }];
  expect(await shop(graph, { query: QUERY })).toEqual({
    data: { users: [...nobodyPaid, { name: 'Thandi', payments }] },
  });
  expect(await other(graph, { query: QUERY })).toEqual({
    data: { users: [...nobodyPaid, { name: 'Thandi', payments: [] }] },
  });

  const { body } = await registry.call('GET', '/services/users');
  const mercurius = await startMercurius({ payment: payment.service.url, users: String(body?.['service_url']) });
  for (const caller of [shop, other])
    expect(await caller(mercurius, { query: QUERY })).toEqual(await caller(graph, { query: QUERY }));
});
