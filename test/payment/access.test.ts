import { randomUUID } from 'node:crypto';
import { paymentOperations } from '@rollcall/platform/http/operations/payment.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { type BillingService, type Caller, codeOf, sandbox, startBilling } from './billing-service.ts';

const stack = new AsyncDisposableStack();
let billing: BillingService;
let sender: Caller;

beforeAll(async () => {
  const { url: databaseUrl } = stack.use(await createDatabase());
  billing = stack.use(await startBilling({ databaseUrl, ...sandbox }));
  sender = await billing.callerOf('shop', 'messages:send messages:read');
});

afterAll(() => stack.disposeAsync());

const routes = paymentOperations.flatMap(({ scope, rest }) =>
  scope === undefined ? [] : rest.map((route) => ({ route, scope })),
);

test.each(routes)('$route is for who has $scope alone', async ({ route, scope }) => {
  const [method = '', template = ''] = route.split(' ');
  const path = template.replaceAll(/:\w+/g, () => randomUUID());
  const nobody = await fetch(`${billing.service.url}/api/v1${path}`, { method });
  expect([nobody.status, await nobody.json()]).toMatchObject([401, { error: { code: 'UNAUTHENTICATED' } }]);
  const answer = await sender.call({ method, path });
  expect([answer.status, codeOf(answer)]).toEqual([403, 'FORBIDDEN']);
  expect(answer.body).toMatchObject({ error: { details: { missing: [scope] } } });
});
