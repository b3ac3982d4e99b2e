import type { AnalysisCheck, AnalysisResult } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import { buildContext } from '../job/context.ts';
import type { Measurement, RegistrationView } from '../job/snapshot.ts';
import { buildAtStage, buildPolicy, START, type StageWish } from '../testing/builders.ts';
import { dueChecks, hasChecks, verify } from './verification.ts';

const check: AnalysisCheck = {
  name: 'errors',
  initialDelaySeconds: 5,
  intervalSeconds: 10,
  count: 3,
  failureLimit: 1,
  webhook: { url: 'https://example.com', timeoutSeconds: 5 },
};
const atSeconds = (seconds: number) => new Date(START + seconds * 1000);
const measured = (passed: boolean, seconds = 0): Measurement => ({
  check: 'errors',
  passed,
  at: atSeconds(seconds),
  message: 'm',
});
const known = (measurements: number, failures: number, seconds: number): AnalysisResult[] => [
  { name: 'errors', measurements, failures, lastMeasuredAt: atSeconds(seconds).toISOString(), message: 'last' },
];

function viewAt(wish: Partial<StageWish>) {
  const snapshot = buildAtStage({
    strategy: 'Rolling',
    stage: 'Verifying',
    seconds: 30,
    policy: { analysis: [check] },
    ...wish,
  });
  const { job, saved } = snapshot;
  if (saved === undefined || job.status === undefined) throw new Error('nothing is saved');
  return { snapshot, context: buildContext(snapshot, saved, job.status) };
}

test.for<[string, AnalysisResult[], Measurement[], string, [number, number]]>([
  ['nothing yet', [], [], 'running', [0, 0]],
  ['the first', [], [measured(true)], 'running', [1, 0]],
  ['a failure within the limit', known(1, 0, -10), [measured(false)], 'running', [2, 1]],
  ['enough', known(2, 1, -10), [measured(true)], 'passed', [3, 1]],
  ['above the limit, at once', known(1, 1, -10), [measured(false)], 'failed', [2, 2]],
  ['already counted', known(2, 0, 0), [measured(true)], 'running', [2, 0]],
  ['of the stage before', [], [measured(false, -31)], 'running', [0, 0]],
  ['two at a time', known(1, 0, -10), [measured(true, -1), measured(true)], 'passed', [3, 0]],
])('a verdict: %s', ([, analysis, measurements, verdict, [count, failures]]) => {
  const { context } = viewAt({ status: { analysis }, snapshot: { measurements } });
  const result = verify(context);
  expect(result.verdict).toBe(verdict);
  expect(result.results).toMatchObject([{ name: 'errors', measurements: count, failures }]);
});

test.for<[string, AnalysisResult[], Measurement[], string, [number, number]]>([
  ['passed once', known(3, 1, -10), [], 'passed', [3, 1]],
  ['failures of the round before do not count', known(3, 1, -10), [measured(false)], 'passed', [4, 1]],
  ['too many in one round', known(4, 1, -10), [measured(false)], 'failed', [5, 2]],
  ['a round later', known(6, 1, -10), [measured(true)], 'passed', [7, 0]],
])('checks go on while a canary pauses: %s', ([, analysis, measurements, verdict, [count, failures]]) => {
  const { context } = viewAt({ stage: 'StepPausing', status: { analysis }, snapshot: { measurements } });
  const result = verify(context);
  expect(result).toMatchObject({ verdict, results: [{ measurements: count, failures }] });
});

test('a failure in a pause says of how many', () => {
  const wish = { status: { analysis: known(4, 1, -10) }, snapshot: { measurements: [measured(false)] } };
  expect(verify(viewAt({ stage: 'StepPausing', ...wish }).context).message).toContain('(2 of the last 2 measurements');
});

test('what is waited for is named, with what was heard', () => {
  const { context } = viewAt({ policy: { analysis: [check], requireHeartbeat: true } });
  expect(verify(context).message).toBe(
    'Waits for the checks errors, requireHeartbeat: the service has no live registration',
  );
});

test('a check that nobody measures fails in the end', () => {
  expect(verify(viewAt({ seconds: 600 }).context).verdict).toBe('running');
  const late = verify(viewAt({ seconds: 5 + 3 * 310 + 600 }).context);
  expect(late).toMatchObject({ verdict: 'failed', message: expect.stringContaining('errors') });
});

test.for<[string, Partial<StageWish>, number[]]>([
  ['the first after the delay', {}, [-25]],
  ['the next after the interval', { status: { analysis: known(1, 0, -4) } }, [6]],
  ['the next after what has just come in', { snapshot: { measurements: [measured(true)] } }, [10]],
  ['none when it is decided', { stage: 'StepVerifying', status: { analysis: known(3, 0, -4) } }, []],
  ['the next all the same while a canary pauses', { stage: 'StepPausing', status: { analysis: known(3, 0, -4) } }, [6]],
  ['the next all the same while the version bakes', { stage: 'Baking', status: { analysis: known(3, 0, -4) } }, [6]],
  ['none where it has failed', { stage: 'StepPausing', status: { analysis: known(3, 2, -4) } }, []],
  ['none in another stage', { stage: 'Updating' }, []],
  ['none when the job is undone', { status: { failure: { reason: 'Aborted', message: '' } } }, []],
])('due: %s', ([, wish, seconds]) => {
  expect(dueChecks(viewAt(wish).snapshot).map(({ dueAt }) => (dueAt.getTime() - START) / 1000)).toEqual(seconds);
});

test('the smoke test is a check of the stage Testing', () => {
  const smokeTest = { path: '/', port: 80, scheme: 'HTTP' as const, timeoutSeconds: 5 };
  const policy = { blueGreen: { bakeSeconds: 0, autoPromote: true, smokeTest } };
  expect(dueChecks(viewAt({ stage: 'Testing', policy }).snapshot)).toMatchObject([
    { check: { name: 'smokeTest', http: smokeTest } },
  ]);
  expect(hasChecks('Testing', buildPolicy(policy))).toBe(true);
  expect(hasChecks('Testing', buildPolicy())).toBe(false);
  expect(hasChecks('Testing', buildPolicy({ requireHeartbeat: true }))).toBe(true);
});

const healthy = { status: 'Healthy', reportedAt: atSeconds(0), version: '1.1.0' };
test.for<[string, Partial<RegistrationView>, string]>([
  ['no registration', { heartbeatAt: undefined }, 'running'],
  ['the old version', { health: { ...healthy, version: '1.0.0' } }, 'running'],
  ['no health', { health: undefined }, 'running'],
  ['ill', { health: { ...healthy, status: 'degraded' } }, 'running'],
  ['no heartbeat since the job began', { heartbeatAt: atSeconds(-101) }, 'running'],
  ['no health since the job began', { health: { ...healthy, reportedAt: atSeconds(-101) } }, 'running'],
  [
    'since the job began',
    { heartbeatAt: atSeconds(-99), health: { ...healthy, reportedAt: atSeconds(-99) } },
    'passed',
  ],
  ['all of it', {}, 'passed'],
  ['the version in its registration', { health: { ...healthy, version: undefined } }, 'passed'],
])('requireHeartbeat: %s', ([, seen, verdict]) => {
  const registration = { heartbeatAt: atSeconds(0), currentVersion: '1.1.0', health: healthy, ...seen };
  const old = { ...registration, currentVersion: '1.0.0', health: { ...healthy, version: '1.0.0' } };
  const { context } = viewAt({ policy: { requireHeartbeat: true }, snapshot: { registrations: [old, registration] } });
  const { verdict: found, results } = verify(context);
  expect(found).toBe(verdict);
  // Once heard of, it need not be heard of again.
  const again = viewAt({ policy: { requireHeartbeat: true }, status: { analysis: [...results] } });
  expect(verify(again.context).verdict).toBe(verdict);
});

test('a new version that is never heard of fails at the progress deadline', () => {
  const { context } = viewAt({ policy: { requireHeartbeat: true }, seconds: 600 });
  expect(verify(context)).toMatchObject({
    verdict: 'failed',
    message: expect.stringContaining('no live registration'),
  });
});
