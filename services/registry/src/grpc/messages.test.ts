import { expect, test } from 'vitest';
import { readDetails, readTimestamp, type Struct, timestampMessage } from './messages.ts';

test('details of all types', () => {
  const struct: Struct = {
    fields: {
      text: { stringValue: '' },
      number: { numberValue: 0 },
      truth: { boolValue: false },
      nothing: { nullValue: 'NULL_VALUE' },
      list: { listValue: { values: [{ numberValue: 1 }, { structValue: { fields: {} } }] } },
      object: { structValue: { fields: { a: { stringValue: 'b' } } } },
    },
  };
  expect(readDetails(struct)).toEqual({
    text: '',
    number: 0,
    truth: false,
    nothing: null,
    list: [1, {}],
    object: { a: 'b' },
  });
  expect(readDetails(null)).toEqual({});
});

test('details that are nested without end are refused', () => {
  let nested: Struct = { fields: {} };
  for (let depth = 0; depth < 100; depth += 1) nested = { fields: { a: { structValue: nested } } };
  expect(() => readDetails(nested)).toThrow(/too deeply/);
});

test.each(['2026-11-20T17:00:00.123Z', '1969-12-31T23:59:59.999Z', '0001-01-01T00:00:00.000Z'])(
  '%s there and back',
  (text) => {
    const message = timestampMessage(new Date(text));
    expect(message.nanos).toBeGreaterThanOrEqual(0);
    expect(readTimestamp(message).toISOString()).toBe(text);
  },
);

test.each([
  { seconds: 0, nanos: -1 },
  { seconds: 0, nanos: 1_000_000_000 },
  { seconds: 253_402_300_800, nanos: 0 },
  { seconds: Number.NaN, nanos: 0 },
])('%j is no instant', (message) => {
  expect(() => readTimestamp(message)).toThrow(/instant/);
});
