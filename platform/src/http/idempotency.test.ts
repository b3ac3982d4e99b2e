import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLogger } from '../process/log.ts';
import { codedErrorBody } from './errors.ts';
import { idempotencyHeaders, idempotencyKeyOf, mutationKeyOf, sendOnceAnswer } from './idempotency.ts';
import { type App, createServer } from './server.ts';

let app: App;

beforeAll(() => {
  app = createServer({
    log: createLogger('test', 'silent'),
    metrics: new Registry(),
    bodyLimit: 1000,
    closingLimitMs: 100,
    mapError: () => undefined,
    renderError: codedErrorBody,
  });
  app.post('/things', { schema: { headers: idempotencyHeaders } }, ({ headers }, reply) =>
    sendOnceAnswer(reply, {
      answer: { status: 201, location: '/things/1', body: { key: idempotencyKeyOf(headers) ?? 'none' } },
      isReplayed: headers['x-again'] === 'yes',
    }),
  );
});

afterAll(() => app.close());

const post = (headers: Record<string, string>) => app.inject({ method: 'POST', url: '/things', headers });

test('an answer has its place, and says whether it was given before', async () => {
  const first = await post({ 'idempotency-key': 'a key' });
  expect([first.statusCode, first.json(), first.headers.location]).toEqual([201, { key: 'a key' }, '/things/1']);
  expect(first.headers['idempotent-replayed']).toBeUndefined();
  expect((await post({ 'idempotency-key': 'a key', 'x-again': 'yes' })).headers['idempotent-replayed']).toBe('true');
});

test.each(['!', ' ~ ', 'x'.repeat(255)])('%j is a key', async (key) => {
  expect((await post({ 'idempotency-key': key })).json()).toEqual({ key });
});

test('a call may have none', async () => {
  expect((await post({})).json()).toEqual({ key: 'none' });
});

test.each(['', 'x'.repeat(256), 'é', 'a\tb', '\u007f'])('%j is none', async (key) => {
  const answer = await post({ 'idempotency-key': key });
  const [fault] = answer.json().error.details.fields;
  expect([answer.statusCode, fault.path]).toEqual([400, 'headers/idempotency-key']);
  const refused = expect.objectContaining({ code: 'INVALID_REQUEST' });
  expect(() => mutationKeyOf({ 'idempotency-key': key }, undefined)).toThrow(refused);
  expect(() => mutationKeyOf({}, key)).toThrow(refused);
});

test('a mutation has its key from the header, from its input, or the same from both', () => {
  expect(mutationKeyOf({ 'idempotency-key': 'a' }, undefined)).toBe('a');
  expect(mutationKeyOf({}, 'a')).toBe('a');
  expect(mutationKeyOf({ 'idempotency-key': 'a' }, 'a')).toBe('a');
  expect(mutationKeyOf({}, null)).toBeUndefined();
  expect(() => mutationKeyOf({ 'idempotency-key': 'a' }, 'b')).toThrow(
    'input/idempotencyKey must be that of the header',
  );
});
