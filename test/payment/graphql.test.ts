import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Caller, idOf } from './billing-service.ts';
import { choose, type PaymentService, startPayment, tea, untilPayment } from './payment-service.ts';

const stack = new AsyncDisposableStack();
let payment: PaymentService;
let shop: Caller;

beforeAll(async () => {
  payment = stack.use(await startPayment());
  shop = await payment.callerOf('shop');
});

afterAll(() => stack.disposeAsync());

const CREATE = `mutation Create($input: CreatePaymentInput!) {
  createPayment(input: $input) { id status paymentUrl }
}`;
const READ = 'query Read($id: ID!) { payment(id: $id) { id amount currency status provider createdAt } }';

interface Made {
  readonly id: string;
  readonly status: string;
  readonly paymentUrl: string;
}

interface Result {
  readonly data?: {
    readonly createPayment?: Made | null;
    readonly payment?: object | null;
    readonly payments?: { readonly nextCursor: string | null };
  } | null;
  readonly errors?: readonly { readonly extensions: object }[];
}

async function ask(caller: Caller, query: string, variables: object): Promise<Result> {
  const { body } = await caller.post('/../graphql', { query, variables });
  return body ?? {};
}

async function make(input: object): Promise<Made> {
  const { data, errors } = await ask(shop, CREATE, { input });
  if (data?.createPayment === undefined || data.createPayment === null) throw new Error(JSON.stringify(errors));
  return data.createPayment;
}

test('makes a payment, which its payer pays', async () => {
  const { id, status, paymentUrl } = await make({ ...tea, provider: 'stripe' });
  expect(status).toBe('pending');
  await choose({ id, url: paymentUrl }, 'pay');
  await untilPayment(shop, id, 'succeeded');
  expect(await ask(shop, READ, { id })).toEqual({
    data: {
      payment: {
        id,
        amount: tea.amount,
        currency: 'ZAR',
        status: 'succeeded',
        provider: 'stripe',
        createdAt: expect.any(String),
      },
    },
  });
  expect(await ask(await payment.callerOf('other'), READ, { id })).toEqual({ data: { payment: null } });
  const HISTORY = `query History($id: ID!) {
    payment(id: $id) { customerId invoiceId expiresAt events { at event source from to reason actor note } }
  }`;
  const { body } = await shop.get(`/payments/${id}`);
  const { customerId, invoiceId, expiresAt, events } = body ?? {};
  expect(events).not.toEqual([]);
  const { data } = await ask(shop, HISTORY, { id });
  expect(data?.payment).toEqual({ customerId, invoiceId, expiresAt, events });
});

test('lists payments by what they are, to their owner alone, and refuses as REST does', async () => {
  const merchant = await payment.callerOf('merchant-of-lists');
  const other = { ...tea, customerEmail: 'other@example.com' };
  for (const each of [tea, other, tea]) await ask(merchant, CREATE, { input: { ...each, provider: 'sandbox' } });
  const LIST = `query List($limit: Int, $cursor: String, $email: String, $status: String, $from: DateTime, $to: DateTime) {
    payments(limit: $limit, cursor: $cursor, customerEmail: $email, status: $status, from: $from, to: $to) {
      total nextCursor payments { id customerEmail paymentUrl events { to } }
    }
  }`;
  const list = async (caller: Caller, variables: object) => {
    const { data, errors } = await ask(caller, LIST, variables);
    return { errors, page: data?.payments };
  };
  const { page: first } = await list(merchant, { limit: 1, email: tea.customerEmail, status: 'pending' });
  expect(first).toMatchObject({ total: 2, payments: [{ customerEmail: tea.customerEmail }] });
  const { page: second } = await list(merchant, { limit: 1, email: tea.customerEmail, cursor: first?.nextCursor });
  expect(second).toMatchObject({ nextCursor: null, payments: [{ customerEmail: tea.customerEmail }] });
  const pending = { events: [{ to: 'pending' }, { to: 'pending' }] };
  expect((await list(merchant, {})).page).toMatchObject({ total: 3, payments: [pending, pending, pending] });
  const [ago, ahead] = [-3_600_000, 3_600_000].map((ms) => new Date(Date.now() + ms).toISOString());
  expect((await list(merchant, { from: ago, to: ahead })).page).toMatchObject({ total: 3 });
  expect((await list(merchant, { to: ago })).page).toMatchObject({ total: 0 });
  expect((await list(merchant, { from: ahead })).page).toMatchObject({ total: 0 });
  const { errors: faults } = await list(merchant, { from: 'yesterday' });
  expect(faults?.[0]?.extensions).toMatchObject({ details: { fields: [{ path: 'input/from' }] } });
  expect((await list(await payment.callerOf('other'), {})).page).toEqual({ total: 0, nextCursor: null, payments: [] });
  const { errors } = await list(merchant, { limit: 101, status: 'paid' });
  expect(errors?.[0]?.extensions).toMatchObject({
    code: 'INVALID_REQUEST',
    details: {
      fields: [
        { path: 'input/limit', message: 'must be a number from 1 to 100' },
        { path: 'input/status', message: expect.stringContaining("'pending'") },
      ],
    },
  });
});

test('takes amounts of more than 32 bits, and no others than REST does', async () => {
  const amount = 1_000_000_000_000;
  const { id } = await make({ ...tea, amount });
  expect((await ask(shop, READ, { id })).data?.payment).toMatchObject({ amount });
  for (const wrong of [0, -1, 0.5, '100', 2 ** 53]) {
    const { errors } = await ask(shop, CREATE, { input: { ...tea, amount: wrong } });
    const fields = expect.arrayContaining([{ path: 'input/amount', message: expect.any(String) }]);
    expect(errors?.[0]?.extensions).toEqual({ code: 'INVALID_REQUEST', details: { fields } });
  }
});

test('all that is refused is named at once', async () => {
  const input = { ...tea, customerId: 'x', provider: 'yoco', currency: 'USD', amount: 199 };
  const { errors } = await ask(shop, CREATE, { input });
  const fields = ['customerId', 'currency', 'amount'].map((name) => ({ path: `input/${name}` }));
  expect(errors?.[0]?.extensions).toMatchObject({ code: 'CUSTOMER_NOT_FOUND', details: { fields } });
});

test('calls with one key make one payment, by whichever door they come', async () => {
  const key = randomUUID();
  const { id } = await make({ ...tea, idempotencyKey: key });
  expect((await shop.post('/payments', tea, key)).body?.['id']).toBe(id);
  const { errors } = await ask(shop, CREATE, { input: { ...tea, amount: 1, idempotencyKey: key } });
  expect(errors?.[0]?.extensions).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
});

test('needs the scope of the field', async () => {
  const reader = await payment.callerOf('shop', 'payments:read');
  const { errors } = await ask(reader, CREATE, { input: tea });
  expect(errors?.[0]?.extensions).toMatchObject({ code: 'FORBIDDEN', details: { missing: ['payments:write'] } });
});

test('is a subgraph of federation, whose entities others refer to', async () => {
  const { id } = await make(tea);
  const entities = `query Entities($representations: [_Any!]!) {
    _service { sdl }
    _entities(representations: $representations) { ... on Payment { amount } }
  }`;
  const representations = [{ __typename: 'Payment', id }];
  expect(await ask(shop, entities, { representations })).toEqual({
    data: { _service: { sdl: expect.stringContaining('@key(fields: "id")') }, _entities: [{ amount: tea.amount }] },
  });
});

async function customerOf(caller: Caller): Promise<string> {
  return idOf(await caller.post('/customers', { email: 'ada@example.com' }, randomUUID()));
}

describe('payments of users', () => {
  const OF_USERS = `query OfUsers($users: [_Any!]!, $limit: Int) {
    _entities(representations: $users) { ... on User { id payments(limit: $limit) { id customerId events { to } } } }
  }`;
  const everything = 'payments:write payments:read billing:write';

  const ofUsers = (caller: Caller, ids: readonly string[], limit?: number) =>
    ask(caller, OF_USERS, { users: ids.map((id) => ({ __typename: 'User', id })), limit });

  test('a user is a customer of billing, whose payments come the newest first', async () => {
    const merchant = await payment.callerOf('merchant-of-users', everything);
    const [ada, ben] = [await customerOf(merchant), await customerOf(merchant)];
    const made: string[] = [];
    for (const customerId of [ada, ben, ada, ada]) {
      const { data } = await ask(merchant, CREATE, { input: { ...tea, provider: 'sandbox', customerId } });
      made.push(data?.createPayment?.id ?? '');
    }
    const paymentOf = (customerId: string, index: number) => ({
      id: made[index],
      customerId,
      events: [{ to: 'pending' }, { to: 'pending' }],
    });
    const nobody = randomUUID();
    expect(await ofUsers(merchant, [ada, nobody, ben, 'u-1', ada], 2)).toEqual({
      data: {
        _entities: [
          { id: ada, payments: [paymentOf(ada, 3), paymentOf(ada, 2)] },
          { id: nobody, payments: [] },
          { id: ben, payments: [paymentOf(ben, 1)] },
          { id: 'u-1', payments: [] },
          { id: ada, payments: [paymentOf(ada, 3), paymentOf(ada, 2)] },
        ],
      },
    });
    const stranger = await payment.callerOf('stranger-of-users');
    expect(await ofUsers(stranger, [ada])).toEqual({ data: { _entities: [{ id: ada, payments: [] }] } });
    const administrator = await payment.callerOf('administrator-of-users', 'payments:read payments:admin');
    expect(await ofUsers(administrator, [ben])).toEqual({
      data: { _entities: [{ id: ben, payments: [paymentOf(ben, 1)] }] },
    });
  });

  test('needs the scope of payments, and a limit that all users together allow', async () => {
    const biller = await payment.callerOf('shop', 'billing:read');
    const { data, errors } = await ofUsers(biller, [randomUUID()]);
    expect(data).toEqual({ _entities: [null] });
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'FORBIDDEN', details: { missing: ['payments:read'] } });
    const many = Array.from({ length: 101 }, () => randomUUID());
    const faults = [await ofUsers(shop, many.slice(0, 1), 101), await ofUsers(shop, many, 100)];
    for (const fault of faults)
      expect(fault.errors?.[0]?.extensions).toMatchObject({
        code: 'INVALID_REQUEST',
        details: { fields: [{ path: 'input/limit' }] },
      });
    expect(await ofUsers(shop, many.slice(1), 100)).not.toHaveProperty('errors');
  });
});
