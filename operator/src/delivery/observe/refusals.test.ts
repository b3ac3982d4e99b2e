import { KubeApiError } from '@rollcall/platform/kube/errors.ts';
import { expect, test } from 'vitest';
import { RefusedError, StaleError } from '../../runtime/apply.ts';
import { TerminalError } from '../../runtime/decision.ts';
import { buildJob } from '../testing/builders.ts';
import { createRefusals } from './refusals.ts';

const job = buildJob();

const answer = (code: number, message: string) => ({ cause: new KubeApiError(code, { message }) });

function setUp() {
  let nowMs = 0;
  const refusals = createRefusals({ monotonicMs: () => nowMs });
  return { refusals, pass: (ms: number) => void (nowMs += ms) };
}

test.for<[string, number, number]>([
  ['forbidden: quota, rights, most that review', 403, 1],
  ['a busy server', 500, 5],
  ['a namespace that is gone', 404, 5],
])('%s (%d) is reported from failure %d on', ([, code, first]) => {
  const { refusals } = setUp();
  for (let failures = 1; failures <= first; failures += 1) {
    refusals.note(job, new RefusedError('refuses', answer(code, 'no')));
    const reported = failures < first ? undefined : { message: 'refuses: no', isInvalid: false };
    expect(refusals.of(job)).toEqual(reported);
  }
  refusals.forget(job);
  expect(refusals.of(job)).toBeUndefined();
});

test('an object that is rejected is reported at once, as such', () => {
  const { refusals } = setUp();
  const refusal = { message: 'refuses: must be unique', isInvalid: true };
  expect(refusals.note(job, new TerminalError('refuses', answer(422, 'must be unique')))).toEqual(refusal);
  expect(refusals.of(job)).toEqual(refusal);
});

test('a conflict that does not end is reported', () => {
  const { refusals } = setUp();
  const conflict = () => refusals.note(job, new StaleError('Service shop changed meanwhile', answer(409, 'modified')));
  expect([1, 2, 3, 4, 5].map(() => conflict()?.message)).toEqual([
    ...Array<undefined>(4),
    'Service shop changed meanwhile: modified',
  ]);
});

test('answers that are all different are reported once in a while', () => {
  const { refusals, pass } = setUp();
  const reported = [1, 2, 3].map((request) => {
    const news = refusals.note(job, new RefusedError('refuses', answer(403, `denied, request ${request}`)));
    pass(6000);
    return news?.message;
  });
  expect(reported).toEqual(['refuses: denied, request 1', undefined, 'refuses: denied, request 3']);
});

test('what may not be read is no refused change', () => {
  const { refusals } = setUp();
  expect(refusals.note(job, new KubeApiError(403, { message: 'may not list' }))).toBeUndefined();
});
