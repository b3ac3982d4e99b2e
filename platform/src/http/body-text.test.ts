import { assert, asyncProperty, json as jsonTexts, pre } from 'fast-check';
import { fastify } from 'fastify';
import { describe, expect, test } from 'vitest';
import { bodyFault, jsonParser } from './body-text.ts';

const json = 'application/json';

test.each([
  [{ 'content-type': json }],
  [{ 'content-type': `${json}; charset=utf-8` }],
  [{ 'content-type': `${json};CHARSET="UTF8"` }],
  [{ 'content-type': `${json}; charset=us-ascii; x=y` }],
  [{ 'content-type': json, 'content-encoding': 'identity' }],
  [{ 'content-type': json, 'content-encoding': '' }],
  [{}],
])('a body with %j is read', (headers) => {
  expect(bodyFault(headers)).toBeUndefined();
});

test.each([
  [{ 'content-encoding': 'gzip' }],
  [{ 'content-encoding': 'identity, BR' }],
  [{ 'content-encoding': 'nonsense' }],
])('a body with %j is refused, and the answer has what is accepted', (headers) => {
  expect(bodyFault(headers)).toMatchObject({ statusCode: 415, headers: { 'accept-encoding': 'identity' } });
});

test.each(['utf-16', '"ISO-8859-1"', 'latin1', 'utf-8x', '""'])('a body in the charset %s is refused', (charset) => {
  expect(bodyFault({ 'content-type': `${json}; charset=${charset}` })).toMatchObject({ statusCode: 415 });
});

describe('a body of JSON', () => {
  const app = fastify();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, jsonParser(app));
  app.post('/', ({ body }) => ({ body }));
  const post = (payload: string) =>
    app.inject({ method: 'POST', url: '/', payload, headers: { 'content-type': 'application/json' } });

  test.each([
    '{"amount":1,"amount":100}',
    '{"a":{"to":"x","b":[],"to":"y"}}',
    '[{"a":1,"a" \n:1}]',
    String.raw`{"a":1,"\u0061":2}`,
    String.raw`{"a\\":1,"a\\":2}`,
    '{"":1,"":1}',
    '{"1":1,"1":2}',
    '{"__proto__":{}}',
    String.raw`{"\u005f_proto__":{}}`,
    '{"a":{"__proto__":null}}',
    '{"constructor":{"prototype":{}}}',
  ])('is refused where a member is named twice, or changes objects: %s', async (payload) => {
    const answer = await post(payload);
    expect(answer.statusCode).toBe(400);
    expect(answer.json().message).toMatch(/^The body must/);
  });

  test.each([
    '{"a":"b\\":","c":"\\\\"}',
    '{"a":[{"a":1},{"a":1}]}',
    '" : "',
    '["a:b", "\\"a\\":"]',
    '{"a":{"a":{"a":1}}}',
  ])('is taken: %s', async (payload) => {
    expect((await post(payload)).json()).toEqual({ body: JSON.parse(payload) });
  });

  test('is taken whatever it says once', async () => {
    await assert(
      asyncProperty(jsonTexts(), async (payload) => {
        pre(!/__proto__|prototype/.test(payload) && payload.isWellFormed());
        expect((await post(payload)).statusCode).toBe(200);
      }),
      { numRuns: 300 },
    );
  });

  test('of twelve megabytes is read, too', async () => {
    const content = Buffer.alloc(9_000_000).toString('base64');
    const app15 = fastify({ bodyLimit: 20_000_000 });
    app15.removeAllContentTypeParsers();
    app15.addContentTypeParser('application/json', { parseAs: 'buffer' }, jsonParser(app15));
    app15.post('/', () => 'taken');
    const headers = { 'content-type': 'application/json' };
    const answer = await app15.inject({ method: 'POST', url: '/', payload: JSON.stringify({ content }), headers });
    expect(answer.body).toBe('taken');
  });
});
