import type { JobRecord } from '@rollcall/client/job-types.ts';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CliDeps } from './deps.ts';
import { createProgressDisplay } from './progress.ts';

const CLEAR = '\r\u001b[2K';

const job: JobRecord = {
  job_id: 'deploy-shop-2-1',
  service_name: 'shop',
  operation: 'deploy',
  version: '2',
  old_version: '1',
  strategy: 'rolling',
  phase: 'Progressing',
  stage: null,
  step: null,
  weight: null,
  actual_weight: null,
  reason: null,
  message: 'starts',
  artifact: { url: 'shop:2', type: 'image', checksum: null },
  requested_by: 'webhook',
  created_at: '2026-11-20T12:00:00Z',
  started_at: '2026-11-20T12:00:00Z',
  finished_at: null,
  analysis: [],
};

/** What a display writes, on a terminal of this width where one is given. */
function displayOn(columns: number | undefined, { json = false } = {}) {
  const written = { out: '', err: '' };
  const deps: CliDeps = {
    env: {},
    cwd: '/',
    now: () => new Date(),
    out: (text) => {
      written.out += text;
    },
    err: (text) => {
      written.err += text;
    },
    hasTerminal: false,
    terminalColumns: () => columns,
    exitWith: () => undefined,
  };
  return { written, display: createProgressDisplay(deps, { json }) };
}

beforeEach(() => void vi.useFakeTimers({ now: Date.parse('2026-11-20T12:00:05Z') }));
afterEach(() => void vi.useRealTimers());

describe('on a terminal', () => {
  it('there is one line, drawn anew at every change and every second', () => {
    const { written, display } = displayOn(80);
    display.show(job);
    vi.advanceTimersByTime(2000);
    display.show({ ...job, message: 'goes on' });
    display.close();
    expect(written.out).toBe('');
    expect(written.err.split(CLEAR)).toEqual([
      '',
      'shop 1 -> 2  Progressing  5s  starts',
      'shop 1 -> 2  Progressing  6s  starts',
      'shop 1 -> 2  Progressing  7s  starts',
      'shop 1 -> 2  Progressing  7s  goes on',
      '',
    ]);
  });

  it('a note stands above the line', () => {
    const { written, display } = displayOn(80);
    display.show(job);
    display.note('connected again');
    const line = 'shop 1 -> 2  Progressing  5s  starts';
    expect(written.err).toBe(`${CLEAR}${line}${CLEAR}rollcall: connected again\n${CLEAR}${line}`);
    display.close();
  });

  it('nothing stays of the line, and no timer, when the job has ended', () => {
    const { written, display } = displayOn(80);
    display.show(job);
    display.show({ ...job, phase: 'Succeeded' });
    display.close();
    const before = written.err;
    vi.advanceTimersByTime(5000);
    expect(written.err).toBe(before);
    expect(before.endsWith(CLEAR)).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('elsewhere', () => {
  it('there is a line for every change that can be seen', () => {
    const { written, display } = displayOn(undefined);
    display.show(job);
    display.show({ ...job, stage: 'Updating' });
    vi.advanceTimersByTime(5000);
    display.show({ ...job, message: 'goes on' });
    display.note('connected again');
    display.show({ ...job, message: 'starts' });
    display.close();
    expect(written.out).toBe('');
    expect(written.err.replace(/^\d\d:\d\d:\d\d/gm, '')).toBe(
      [
        '   Progressing   -      -        starts',
        '   Progressing   -      -        goes on',
        'rollcall: connected again',
        '   Progressing   -      -        starts',
        '',
      ].join('\n'),
    );
  });
});

describe('with -o json', () => {
  it('every record is a line on standard output, on a terminal too', () => {
    const { written, display } = displayOn(80, { json: true });
    display.show(job);
    display.note('connected again');
    display.show({ ...job, stage: 'Updating' });
    display.close();
    expect(written.err).toBe('rollcall: connected again\n');
    expect(
      written.out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([job, { ...job, stage: 'Updating' }]);
  });
});
