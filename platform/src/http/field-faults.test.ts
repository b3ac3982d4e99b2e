import { Registry } from 'prom-client';
import { Type } from 'typebox';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLogger } from '../process/log.ts';
import { codedErrorBody } from './errors.ts';
import { patternInWords } from './patterns.ts';
import { type App, createServer } from './server.ts';

const strict = { additionalProperties: false } as const;
const isRound = (amount: number) => amount % 10 === 0;

let app: App;

beforeAll(() => {
  app = createServer({
    log: createLogger('test', 'silent'),
    metrics: new Registry(),
    bodyLimit: 100_000,
    closingLimitMs: 100,
    mapError: () => undefined,
    renderError: codedErrorBody,
  });
  const body = Type.Object(
    {
      amount: Type.Refine(Type.Integer({ minimum: 1 }), isRound, () => 'must be round'),
      email: Type.String({ format: 'email' }),
      currency: Type.Enum(['ZAR', 'KWD']),
      note: Type.Optional(
        Type.Union([Type.String(patternInWords('^[^\\n]*$', 'must have no line breaks')), Type.Null()]),
      ),
      items: Type.Optional(Type.Array(Type.Object({ quantity: Type.Integer() }, strict))),
    },
    strict,
  );
  const querystring = Type.Object({ limit: Type.Optional(Type.Integer({ maximum: 100 })) }, strict);
  const params = Type.Object({ id: Type.String({ format: 'uuid' }) });
  const headers = Type.Object({ 'idempotency-key': Type.Optional(Type.String({ maxLength: 5 })) });
  app.post('/things/:id', { schema: { body, querystring, params, headers } }, () => 'taken');
});

afterAll(() => app.close());

const ID = '0f0f0f0f-0000-4000-8000-000000000000';
const valid = { amount: 10, email: 'a@b.example', currency: 'ZAR' };

async function faultsOf(payload: object, url = `/things/${ID}`, headers = {}) {
  const answer = await app.inject({ method: 'POST', url, payload, headers });
  return { status: answer.statusCode, fields: answer.json().error?.details.fields, code: answer.json().error?.code };
}

test('a request without a fault is taken', async () => {
  const answer = await app.inject({ method: 'POST', url: `/things/${ID}?limit=5`, payload: valid });
  expect(answer.body).toBe('taken');
});

test('faults of format, range, rule and spelling are said together, each at its field', async () => {
  const payload = { amount: 15, email: 'nobody', currency: 'XXX', items: [{ quantity: 1.5, 'a/b': 1 }, {}], other: 1 };
  expect(await faultsOf(payload)).toEqual({
    status: 400,
    code: 'INVALID_REQUEST',
    fields: expect.arrayContaining([
      { path: 'body/amount', message: 'must be round' },
      { path: 'body/email', message: 'must match format "email"' },
      { path: 'body/currency', message: "must be equal to one of the allowed values: 'ZAR', 'KWD'" },
      { path: 'body/items/0/quantity', message: 'must be integer' },
      { path: 'body/items/0/a~1b', message: 'is not known' },
      { path: 'body/items/1/quantity', message: 'is required' },
      { path: 'body/other', message: 'is not known' },
    ]),
  });
  expect((await faultsOf(payload)).fields).toHaveLength(7);
});

test.each([
  ['a\nb', 'must have no line breaks'],
  [5, 'must be string'],
])('what may be null, and is %j, is told in words: %s', async (note, message) => {
  expect((await faultsOf({ ...valid, note })).fields).toEqual([{ path: 'body/note', message }]);
});

test('the message says the same as the fields', async () => {
  const answer = await app.inject({
    method: 'POST',
    url: `/things/${ID}`,
    payload: { ...valid, amount: 15, other: 1 },
  });
  expect(answer.json().error.message.split(', ').toSorted()).toEqual([
    'body/amount must be round',
    'body/other is not known',
  ]);
});

test('each field that is missing is named', async () => {
  const { fields } = await faultsOf({});
  expect(fields).toEqual(
    ['amount', 'email', 'currency'].map((name) => ({ path: `body/${name}`, message: 'is required' })),
  );
});

test('so are faults of path, query, headers and body', async () => {
  const { fields } = await faultsOf({ ...valid, amount: 0 }, '/things/x?limit=500&page=1', {
    'idempotency-key': 'too long',
  });
  expect(fields).toEqual([
    { path: 'path/id', message: 'must match format "uuid"' },
    { path: 'query/page', message: 'is not known' },
    { path: 'query/limit', message: 'must be <= 100' },
    { path: 'headers/idempotency-key', message: 'must not have more than 5 characters' },
    { path: 'body/amount', message: 'must be >= 1' },
  ]);
});

test.each([[[]], ['text'], [null], [5]])('a body that is %j is one fault', async (payload) => {
  const answer = await app.inject({
    method: 'POST',
    url: `/things/${ID}`,
    headers: { 'content-type': 'application/json' },
    payload: JSON.stringify(payload),
  });
  expect(answer.json().error.details.fields).toEqual([{ path: 'body', message: 'must be object' }]);
});

test('of a body with a thousand faults a hundred are said, and of a long name its beginning', async () => {
  const items = Array.from({ length: 1000 }, () => ({ quantity: 'x' }));
  expect((await faultsOf({ ...valid, items })).fields).toHaveLength(100);
  const { fields } = await faultsOf({ ...valid, ['x'.repeat(5000)]: 1 });
  expect(fields).toEqual([{ path: `body/${'x'.repeat(64)}`, message: 'is not known' }]);
});
