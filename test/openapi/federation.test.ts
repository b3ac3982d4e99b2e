import { expect, test } from 'vitest';
import { startFederation } from '../federation/federation-service.ts';
import { products, reviews, users } from '../federation/shop.ts';
import { startSubgraph } from '../federation/subgraph-server.ts';
import { operationsOf, runSchemathesis } from './schemathesis.ts';

test('federation does what its OpenAPI document says, and nothing else', async () => {
  const { service, call, tokenOf } = await startFederation();
  for (const [name, source] of Object.entries({ users, reviews, products })) {
    const { url: serviceUrl } = await startSubgraph(source);
    await call('POST', '/schemas/introspect', { body: { name, serviceUrl } });
  }
  const api = `${service.url}/api`;
  const token = await tokenOf('schemas:read schemas:write');
  const { code, report, cases, operations } = await runSchemathesis(api, [
    '--max-examples',
    '5',
    '--header',
    `Authorization: Bearer ${token}`,
  ]);
  if (code !== 0) throw new Error(report);
  expect(operations).toBe(await operationsOf(api));
  expect(cases).toBeGreaterThan(300);
});
