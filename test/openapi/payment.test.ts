import { expect, test } from 'vitest';
import { sandbox, startBilling } from '../payment/billing-service.ts';
import { createDatabase } from '../support/postgres.ts';
import { operationsOf, runSchemathesis } from './schemathesis.ts';

const SCOPES = 'billing:write billing:read payments:write payments:read refunds:write';

test('payment does what its OpenAPI document says, and nothing else', async () => {
  await using stack = new AsyncDisposableStack();
  const { url: databaseUrl } = stack.use(await createDatabase());
  const billing = stack.use(await startBilling({ databaseUrl, ...sandbox }));
  const api = `${billing.service.url}/api/v1`;
  const token = await billing.tokenOf('shop', SCOPES);
  const { code, report, cases, operations } = await runSchemathesis(api, [
    '--max-examples',
    '5',
    '--header',
    `Authorization: Bearer ${token}`,
  ]);
  if (code !== 0) throw new Error(report);
  expect(operations).toBe(await operationsOf(api));
  expect(cases).toBeGreaterThan(1000);
});
