import { expect, test } from 'vitest';
import { createLogger } from '../process/log.ts';
import { createLossReport } from './loss-report.ts';

function setUp() {
  let nowMs = 0;
  const lines: Record<string, unknown>[] = [];
  const log = createLogger('test', 'info', { write: (line) => void lines.push(JSON.parse(line)) });
  const report = createLossReport(log, { now: () => new Date(nowMs), monotonicMs: () => nowMs });
  const advance = (ms: number) => {
    nowMs += ms;
  };
  return { report, advance, told: () => lines.map(({ level, spans, reason }) => ({ level, spans, reason })) };
}

test('reports the first loss at once, then once in a minute with all that was lost meanwhile', () => {
  const { report, advance, told } = setUp();
  report.lost(512, new Error('connect ECONNREFUSED'));
  for (let count = 0; count < 1000; count += 1) report.lost(1, 'the queue is full');
  expect(told()).toEqual([{ level: 'warn', spans: 512, reason: 'connect ECONNREFUSED' }]);
  advance(59_999);
  report.lost(1, 'the queue is full');
  expect(told()).toHaveLength(1);
  advance(1);
  report.lost(2, new Error('Internal Server Error'));
  expect(told()[1]).toEqual({ level: 'warn', spans: 1003, reason: 'Internal Server Error' });
});

test('reports the rest at the end, and nothing where there is none', () => {
  const { report, told } = setUp();
  report.finish();
  expect(told()).toEqual([]);
  report.lost(1, 'x'.repeat(1000));
  report.lost(3, 'y');
  report.finish();
  report.finish();
  expect(told()).toEqual([
    { level: 'warn', spans: 1, reason: 'x'.repeat(200) },
    { level: 'warn', spans: 3, reason: 'y' },
  ]);
});
