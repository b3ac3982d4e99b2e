import { Registry } from 'prom-client';
import { Type } from 'typebox';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLogger } from '../process/log.ts';
import { codedErrorBody } from './errors.ts';
import { listQuery, pageOf } from './lists.ts';
import { type App, createServer } from './server.ts';
import { answerToServiceError } from './service-errors.ts';

let app: App;

beforeAll(() => {
  app = createServer({
    log: createLogger('test', 'silent'),
    metrics: new Registry(),
    bodyLimit: 1000,
    closingLimitMs: 100,
    mapError: answerToServiceError,
    renderError: codedErrorBody,
  });
  const querystring = Type.Object({ ...listQuery }, { additionalProperties: false });
  app.get('/things', { schema: { querystring } }, ({ query }) => pageOf(query));
});

afterAll(() => app.close());

const position = '2026-11-27T03:00:00.123456Z 0f0f0f0f-0000-4000-8000-000000000000';
const cursor = Buffer.from(position).toString('base64url');

test.each([
  ['', { limit: 20, offset: 0 }],
  ['limit=1&offset=0', { limit: 1, offset: 0 }],
  ['limit=100&offset=10000', { limit: 100, offset: 10_000 }],
  [`cursor=${cursor}`, { limit: 20, offset: 0, cursor }],
])('"%s" is a page', async (query, page) => {
  expect((await app.inject(`/things?${query}`)).json()).toEqual(page);
});

const cursorOf = (text: string) => Buffer.from(text).toString('base64url');

test.each([
  ['limit=0', 'limit'],
  ['limit=101', 'limit'],
  ['limit=1.5', 'limit'],
  ['limit=1e1', 'limit'],
  ['limit=', 'limit'],
  ['limit=1&limit=2', 'limit'],
  ['limit=%201', 'limit'],
  ['offset=-1', 'offset'],
  ['offset=10001', 'offset'],
  ['offset=01', 'offset'],
  ['page=1', 'page'],
  ['cursor=', 'cursor'],
  ['cursor=abc', 'cursor'],
  [`cursor=${cursor}&offset=0`, 'offset'],
  [`cursor=${cursorOf(position.replace('11-27', '02-30'))}`, 'cursor'],
  [`cursor=${cursorOf(position.replace('2026', '0000'))}`, 'cursor'],
  [`cursor=${cursorOf(position.replace('03:00', '24:00'))}`, 'cursor'],
  [`cursor=${cursorOf(`${position}'; --`)}`, 'cursor'],
  [`cursor=${cursorOf(position.replace('0f0f', 'xyzw'))}`, 'cursor'],
])('"%s" is refused at its field', async (query, field) => {
  const answer = await app.inject(`/things?${query}`);
  expect(answer.statusCode).toBe(400);
  expect(answer.json().error).toMatchObject({
    code: 'INVALID_REQUEST',
    details: { fields: [{ path: `query/${field}` }] },
  });
});
