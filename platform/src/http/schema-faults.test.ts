import type { InjectOptions } from 'fastify';
import { Registry } from 'prom-client';
import { Type } from 'typebox';
import { afterAll, expect, test } from 'vitest';
import { createLogger } from '../process/log.ts';
import { documented } from './documented.ts';
import { patternInWords } from './patterns.ts';
import { type App, createServer } from './server.ts';

const Colour = Type.Enum(['red', 'dark blue']);
const app = newServer();
afterAll(() => app.close());

function newServer(): App {
  return createServer({
    log: createLogger('test', 'silent'),
    metrics: new Registry(),
    bodyLimit: 100_000,
    closingLimitMs: 100,
    mapError: () => undefined,
  });
}

const body = Type.Object({
  colour: Type.Optional(Colour),
  colours: Type.Optional(Type.Array(Colour)),
  action: Type.Optional(Type.Literal('replay')),
  count: Type.Optional(Type.Integer()),
  code: Type.Optional(Type.String(patternInWords('^[A-Z]+$', 'must have capitals alone'))),
});
app.post('/', { schema: { body } }, () => 'taken');
app.get('/', { schema: { querystring: Type.Object({ colour: Type.Optional(Colour) }) } }, () => 'taken');

async function faultOf(request: InjectOptions | string): Promise<string> {
  const answer = await app.inject(request);
  expect(answer.statusCode).toBe(400);
  return answer.json<{ message: string }>().message;
}

test.each([
  [{ colour: 'green' }, "body/colour must be equal to one of the allowed values: 'red', 'dark blue'"],
  [{ colours: ['red', 5] }, "body/colours/1 must be equal to one of the allowed values: 'red', 'dark blue'"],
  [{ action: 'play' }, "body/action must be equal to constant: 'replay'"],
  [{ count: 'x' }, 'body/count must be integer'],
  [{ code: 'a' }, 'body/code must have capitals alone'],
])('%j: %s', async (payload, fault) => {
  expect(await faultOf({ method: 'POST', url: '/', payload })).toBe(fault);
});

test('also in a query, which is called as the fields call it', async () => {
  const fault = "query/colour must be equal to one of the allowed values: 'red', 'dark blue'";
  expect(await faultOf('/?colour=green')).toBe(fault);
});

test('a route whose pattern has no words is no route: nobody would read why they are refused', () => {
  const bare = Type.String({ pattern: '^[A-Z]+$' });
  const schemas = [
    { body: Type.Object({ codes: Type.Array(Type.Union([Type.Null(), bare])) }) },
    { params: Type.Object({ code: bare }) },
    { querystring: Type.Object({ code: Type.Optional(bare) }) },
    { headers: Type.Object({ code: bare }) },
  ];
  for (const schema of schemas)
    expect(() => newServer().post('/', { schema }, () => '')).toThrow('POST / has no words');
  const worded = {
    body: Type.Object({ code: Type.String(documented({ pattern: '^[A-Z]+$' })), pattern: Type.String() }),
  };
  expect(() => newServer().post('/', { schema: worded }, () => '')).not.toThrow();
});
