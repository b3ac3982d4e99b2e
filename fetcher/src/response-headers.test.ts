import { expect, test } from 'vitest';
import { parseContentLength, parseContentRange, parseRetryAfterMs, validatorOf } from './response-headers.ts';

test.each([
  { header: 'bytes 5-9/10', range: { start: 5, end: 9, total: 10 } },
  { header: 'bytes 0-0/1', range: { start: 0, end: 0, total: 1 } },
  { header: 'BYTES 5-9/*', range: { start: 5, end: 9, total: undefined } },
  { header: 'bytes 5-4/10', range: undefined },
  { header: 'bytes 5-10/10', range: undefined },
  { header: 'bytes */10', range: undefined },
  { header: 'bytes 5-/10', range: undefined },
  { header: 'bytes=5-9/10', range: undefined },
  { header: 'items 5-9/10', range: undefined },
  { header: 'bytes 5-9999999999999999/*', range: undefined },
  { header: '', range: undefined },
  { header: undefined, range: undefined },
])('Content-Range $header', ({ header, range }) => {
  expect(parseContentRange(header)).toEqual(range);
});

test.each([
  { header: '0', length: 0 },
  { header: '314572800', length: 314_572_800 },
  { header: '-1', length: undefined },
  { header: ['5', '6'], length: undefined },
  { header: '1e3', length: undefined },
  { header: '9999999999999999', length: undefined },
  { header: undefined, length: undefined },
])('Content-Length $header', ({ header, length }) => {
  expect(parseContentLength(header)).toBe(length);
});

test.each([
  { header: '0', ms: 0 },
  { header: '120', ms: 120_000 },
  { header: 'Sat, 21 Nov 2026 12:00:30 GMT', ms: 30_000 },
  { header: 'Sat, 21 Nov 2026 11:00:00 GMT', ms: 0 },
  { header: 'soon', ms: undefined },
  { header: '', ms: undefined },
  { header: undefined, ms: undefined },
])('Retry-After $header', ({ header, ms }) => {
  expect(parseRetryAfterMs(header, new Date('2026-11-21T12:00:00Z'))).toBe(ms);
});

test.each([
  { what: 'a strong ETag', headers: { etag: '"a"', 'last-modified': 'x' }, validator: '"a"' },
  { what: 'a weak ETag', headers: { etag: 'W/"a"' }, validator: undefined },
  { what: 'a weak ETag and a date', headers: { etag: 'W/"a"', 'last-modified': 'x' }, validator: 'x' },
  { what: 'an ETag without quotes', headers: { etag: 'a' }, validator: undefined },
  { what: 'nothing', headers: {}, validator: undefined },
])('$what gives the validator $validator', ({ headers, validator }) => {
  expect(validatorOf(headers)).toBe(validator);
});
