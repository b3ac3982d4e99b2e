import { expect, test } from 'vitest';
import { retryAfterMs } from './retry-after.ts';

const now = new Date('2026-11-27T10:00:00Z');

test.each([
  { header: '0', ms: 0 },
  { header: '7', ms: 7000 },
  { header: ' 120 ', ms: 120_000 },
  { header: 'Fri, 27 Nov 2026 10:00:30 GMT', ms: 30_000 },
  { header: 'Friday, 27-Nov-26 10:00:30 GMT', ms: 30_000 },
  { header: 'Fri, 27 Nov 2026 09:59:00 GMT', ms: 0 },
  { header: '9999999999', ms: 86_400_000 },
  { header: 'Fri, 27 Nov 2099 10:00:00 GMT', ms: 86_400_000 },
])('Retry-After $header asks to wait $ms ms', ({ header, ms }) => {
  expect(retryAfterMs(header, now)).toBe(ms);
});

test.each([undefined, '', ' ', '-5', '1.5', 'soon', '-2026', '99999999999', 'Fri'])(
  'Retry-After %s asks for no time',
  (header) => {
    expect(retryAfterMs(header, now)).toBeUndefined();
  },
);
