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

interface Described {
  readonly parameters?: readonly { readonly name: string }[];
  readonly responses: Readonly<
    Record<string, { content?: Record<string, { schema?: { properties?: Record<string, { type?: string }> } }> }>
  >;
}

/** What the OpenAPI document says of one method, by path. */
async function described(method: string): Promise<readonly (Described & { readonly path: string })[]> {
  const { paths } = (await (await fetch(`${billing.service.url}/api/v1/openapi.json`)).json()) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  };
  return Object.entries(paths).flatMap(([path, { [method]: operation }]) =>
    operation === undefined ? [] : [{ path, ...operation }],
  );
}

test('each POST but those of providers takes a key', async () => {
  const posts = await described('post');
  const keyless = posts.filter(({ parameters }) => parameters?.every(({ name }) => name !== 'idempotency-key') ?? true);
  expect(posts.length).toBeGreaterThan(20);
  expect(keyless.map(({ path }) => path)).toEqual(['/notifications/{provider}']);
});

test('each list has its pages', async () => {
  const gets = (await described('get')).map(({ path, parameters = [], responses }) => {
    const members = responses['200']?.content?.['application/json']?.schema?.properties ?? {};
    const has = Object.values(members).some(({ type }) => type === 'array') && !path.endsWith('}');
    return { path, has, query: parameters.map(({ name }) => name), members: Object.keys(members) };
  });
  const lists = gets.filter(({ has }) => has);
  expect(lists.length).toBeGreaterThan(8);
  const whole = lists.filter(({ query }) => !query.includes('limit')).map(({ path }) => path);
  expect(whole.toSorted()).toEqual(['/ledger/balances', '/reports/settlement-check']);
  for (const { query, members } of lists.filter(({ path }) => !whole.includes(path))) {
    expect(query).toEqual(expect.arrayContaining(['limit', 'offset', 'cursor']));
    expect(members).toEqual(expect.arrayContaining(['total', 'limit', 'offset', 'nextCursor']));
  }
});
