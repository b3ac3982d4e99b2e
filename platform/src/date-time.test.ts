import { expect, test } from 'vitest';
import { parseDateTime } from './date-time.ts';

test.each([
  ['2026-11-25T08:00:00Z', '2026-11-25T08:00:00.000Z'],
  ['2026-11-25t08:00:00z', '2026-11-25T08:00:00.000Z'],
  ['2026-11-25T08:00:00.123456789+02:00', '2026-11-25T06:00:00.123Z'],
  ['2026-11-25T08:00:00-00:00', '2026-11-25T08:00:00.000Z'],
  ['2024-02-29T23:59:59Z', '2024-02-29T23:59:59.000Z'],
  ['2000-02-29T00:00:00Z', '2000-02-29T00:00:00.000Z'],
  ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
  ['0001-01-01T00:00:00-23:59', '0001-01-01T23:59:00.000Z'],
  ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
])('%s is %s', (text, expected) => {
  expect(parseDateTime(text)?.toISOString()).toBe(expected);
});

test.each([
  ['a day that there is not', '2026-02-30T00:00:00Z'],
  ['a 29th of February of no leap year', '2026-02-29T00:00:00Z'],
  ['one of a century', '1900-02-29T00:00:00Z'],
  ['a 31st of April', '2026-04-31T00:00:00Z'],
  ['a month 13', '2026-13-01T00:00:00Z'],
  ['a month 0', '2026-00-01T00:00:00Z'],
  ['a day 0', '2026-01-00T00:00:00Z'],
  ['24 hours', '2026-01-01T24:00:00Z'],
  ['60 minutes', '2026-01-01T00:60:00Z'],
  ['a leap second', '2016-12-31T23:59:60Z'],
  ['no seconds', '2026-01-01T00:00Z'],
  ['no offset', '2026-01-01T00:00:00'],
  ['an offset without a colon', '2026-01-01T00:00:00+0100'],
  ['an offset of 24 hours', '2026-01-01T00:00:00+24:00'],
  ['an offset of 60 minutes', '2026-01-01T00:00:00+01:60'],
  ['a date alone', '2026-01-01'],
  ['a space for T', '2026-01-01 00:00:00Z'],
  ['a comma', '2026-01-01T00:00:00,5Z'],
  ['a point alone', '2026-01-01T00:00:00.Z'],
  ['a week', '2026-W01-1T00:00:00Z'],
  ['a year of six digits', '+002026-01-01T00:00:00Z'],
  ['other digits', '\u0662\u0660\u0662\u0666-01-01T00:00:00Z'],
  ['a year before 1 in UTC', '0001-01-01T00:00:00+00:01'],
  ['the year 0', '0000-01-01T00:00:00Z'],
  ['a year after 9999 in UTC', '9999-12-31T23:59:59-00:01'],
  ['a line feed at its end', '2026-01-01T00:00:00Z\n'],
  ['nothing', ''],
])('%s is no timestamp', (_what, text) => {
  expect(parseDateTime(text)).toBeUndefined();
});
