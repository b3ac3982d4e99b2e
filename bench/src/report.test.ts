import { expect, it } from 'vitest';
import { atLeast, atMost, figure, renderTable } from './report.ts';

it('keeps limits at the limit itself', () => {
  expect(atMost(5, figure('p99', 5, 'ms')).met).toBe(true);
  expect(atMost(5, figure('p99', 5.1, 'ms')).met).toBe(false);
  expect(atLeast(0.6, figure('ratio', 0.6, '')).met).toBe(true);
  expect(atLeast(0.6, figure('ratio', Number.NaN, '')).met).toBe(false);
});

it('renders a table that shows what was missed', () => {
  const rows = [
    figure('rate', 12_345.6, '1/s'),
    atMost(61, figure('gone', 60.042, 's')),
    atMost(1, figure('late', 2.5, 's')),
  ];
  expect(renderTable([{ bench: 'ttl', rows, loadAverage: 1.25 }])).toBe(
    `
| bench | measure |  value | unit | limit | met    |
| ----- | ------- | -----: | ---- | ----- | ------ |
| ttl   | rate    | 12,346 | 1/s  |       |        |
| ttl   | gone    |  60.04 | s    | <= 61 | yes    |
| ttl   | late    |    2.5 | s    | <= 1  | MISSED |

Load average at the end of each bench: ttl 1.3.
`.trim(),
  );
});
