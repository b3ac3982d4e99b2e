import { expect, test } from 'vitest';
import { encodeEvent, parseClientMessage } from './protocol.ts';

test.each([
  { type: 'subscribe', channel: 'jobs' },
  { type: 'subscribe', id: '1', channel: 'jobs.shop', payload: { cursor: '42' } },
  { type: 'subscribe', channel: 'jobs', payload: {} },
  { type: 'unsubscribe', id: 'x', channel: 'jobs' },
  { type: 'ping' },
])('reads %j', (message) => {
  expect(parseClientMessage(JSON.stringify(message))).toEqual(message);
});

test.each([
  ['', 'The message is no JSON'],
  ['{"type":', 'The message is no JSON'],
  ['null', 'The message is no JSON object'],
  ['[]', 'The message is no JSON object'],
  ['"ping"', 'The message is no JSON object'],
  ['{}', 'type must be one of subscribe, unsubscribe, ping'],
  ['{"type":"constructor"}', 'type must be one of subscribe, unsubscribe, ping'],
  ['{"type":["ping"]}', 'type must be one of subscribe, unsubscribe, ping'],
  ['{"type":"subscribe"}', 'The message must have required properties channel'],
  ['{"type":"subscribe","channel":""}', 'channel must not have fewer than 1 characters'],
  ['{"type":"subscribe","channel":7}', 'channel must be string'],
  ['{"type":"subscribe","channel":"jobs","payload":{"cursor":7}}', 'payload.cursor must be string'],
  [`{"type":"subscribe","channel":"${'x'.repeat(301)}"}`, 'channel must not have more than 300 characters'],
])('refuses %s', (text, fault) => {
  expect(parseClientMessage(text)).toEqual({ fault, id: undefined });
});

test('a cursor in the wrong place is a mistake, not a subscription from the beginning', () => {
  const text = '{"type":"subscribe","id":"a","channel":"jobs","cursor":"42"}';
  expect(parseClientMessage(text)).toMatchObject({ fault: expect.stringContaining('cursor'), id: 'a' });
});

test('deep nesting is refused like anything else', () => {
  const deep = `${'['.repeat(5000)}${']'.repeat(5000)}`;
  expect(parseClientMessage(deep)).toEqual({ fault: 'The message is no JSON object', id: undefined });
  expect(parseClientMessage(`{"type":"ping","payload":${deep}}`)).toHaveProperty('fault');
  expect(parseClientMessage(`{"type":"ping","id":${deep}}`)).toEqual({ fault: 'id must be string', id: undefined });
});

test('an event without a cursor has no id', () => {
  const event = { channel: 'jobs', cursor: undefined, payload: { type: 'added' } };
  expect(JSON.parse(encodeEvent(event).toString())).toEqual({
    type: 'event',
    channel: 'jobs',
    payload: { type: 'added' },
  });
});
