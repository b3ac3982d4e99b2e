import { expect, it } from 'vitest';
import { bucketQuantile, parseMetrics, sumOf } from './metrics.ts';

const text = `# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{code="200",process="registry"} 7
requests_total{code="503",process="registry"} 2
up 1
process_cpu_seconds_total{process="registry"} 1.5e-3
`;

it('reads samples and sums series by their labels', () => {
  const metrics = parseMetrics(text);
  expect(sumOf(metrics, 'requests_total')).toBe(9);
  expect(sumOf(metrics, 'requests_total', { code: '503' })).toBe(2);
  expect(sumOf(metrics, 'up')).toBe(1);
  expect(sumOf(metrics, 'process_cpu_seconds_total')).toBe(0.0015);
  expect(sumOf(metrics, 'requests')).toBe(0);
});

function histogram(fast: number, slow: number) {
  const all = fast + slow;
  return parseMetrics(
    `late_bucket{le="0.1"} ${fast}\nlate_bucket{le="1"} ${all}\nlate_bucket{le="+Inf"} ${all}\nlate_count ${all}`,
  );
}

it('finds the bucket that holds a quantile of what came in between', () => {
  const before = histogram(1000, 0);
  expect(bucketQuantile({ before, after: histogram(1099, 1) }, 'late', 0.99)).toBe(0.1);
  expect(bucketQuantile({ before, after: histogram(1098, 2) }, 'late', 0.99)).toBe(1);
  expect(bucketQuantile({ before, after: before }, 'late', 0.99)).toBeNaN();
});
