import { expect, test } from 'vitest';
import { foreignJson, storableText } from './foreign-text.ts';

test.each([
  ['Ana 👋', 'Ana 👋'],
  ['cut \ud83d', 'cut \uFFFD'],
  ['\udc4b and \0', '\uFFFD and \uFFFD'],
  ['line\r\n\u0001', 'line\r\n\u0001'],
])('%j is stored as %j', (text, stored) => {
  expect(storableText(text)).toBe(stored);
});

test('each text of a JSON is storable, however deep; what is no JSON is nothing', () => {
  expect(foreignJson(String.raw`{"id": "a\ud83d", "all": [{"sid": "\u0000b", "sent": true, "parts": 2}]}`)).toEqual({
    id: 'a\uFFFD',
    all: [{ sid: '\uFFFDb', sent: true, parts: 2 }],
  });
  expect(foreignJson(String.raw`"\ud83d\udc4b"`)).toBe('👋');
  expect(foreignJson('<html>')).toBe(undefined);
});
