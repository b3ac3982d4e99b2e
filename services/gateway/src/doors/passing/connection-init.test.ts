import { expect, test } from 'vitest';
import { readConnectionInit } from './connection-init.ts';

test('the token is taken out of the message, whatever the case of its name', () => {
  for (const name of ['authorization', 'Authorization']) {
    const message = { type: 'connection_init', payload: { [name]: 'Bearer a.b.c', other: 1 }, more: 2 };
    const init = readConnectionInit(JSON.stringify(message));
    expect(init?.token).toBe('a.b.c');
    expect(JSON.parse(init?.rest ?? '')).toEqual({ type: 'connection_init', payload: { other: 1 }, more: 2 });
  }
});

test.each([
  '',
  '{',
  'null',
  '[]',
  '{"type":"ping","payload":{"authorization":"Bearer a"}}',
  '{"type":"connection_init"}',
  '{"type":"connection_init","payload":null}',
  '{"type":"connection_init","payload":{"authorization":7}}',
  '{"type":"connection_init","payload":{"authorization":"Basic a"}}',
])('%s shows none', (text) => {
  expect(readConnectionInit(text)).toBeUndefined();
});
