import type { HealthCheck } from '@rollcall/crds/types.gen.ts';
import { describe, expect, test } from 'vitest';
import { type CheckState, nextState } from './next-state.ts';

const check: HealthCheck = {
  type: 'tcp',
  intervalSeconds: 10,
  timeoutSeconds: 2,
  failureThreshold: 3,
  successThreshold: 2,
};
const NONE: CheckState = { status: undefined, streak: undefined };

/** @param outcomes + for one that passed, - for one that failed. @returns the status after each. */
function after(outcomes: string, start: CheckState = NONE): string {
  let state = start;
  return outcomes
    .split('')
    .map((sign, second) => {
      const outcome = { passed: sign === '+', message: `outcome ${second}` };
      state = nextState(state, outcome, { check, now: new Date(second * 1000) });
      return state.status?.status[0] ?? '.';
    })
    .join('');
}

function written(status: 'Passing' | 'Failing'): CheckState {
  return { status: { status, since: '2026-11-26T10:00:00Z', message: '' }, streak: undefined };
}

describe('a check', () => {
  test.each([
    ['+', 'P'],
    ['--+', '..P'],
    ['---', '..F'],
    ['+--+---', 'PPPPPPF'],
    ['---+-++', '..FFFFP'],
  ])('that went %s is %s', (outcomes, statuses) => {
    expect(after(outcomes)).toBe(statuses);
  });

  test.each([
    ['Passing', '--+', 'PPP'],
    ['Passing', '---', 'PPF'],
    ['Failing', '+-++', 'FFFP'],
  ] as const)('that another leader found %s goes on from there: %s', (status, outcomes, statuses) => {
    expect(after(outcomes, written(status))).toBe(statuses);
  });

  test('keeps since when and what was seen at the change', () => {
    const first = nextState(NONE, { passed: true, message: 'it answered 200' }, { check, now: new Date(1000) });
    const second = nextState(first, { passed: true, message: 'it answered 204' }, { check, now: new Date(2000) });
    expect(second.status).toBe(first.status);
    expect(second.status).toEqual({ status: 'Passing', since: '1970-01-01T00:00:01.000Z', message: 'it answered 200' });
  });
});
