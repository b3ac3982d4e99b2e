import type { AnalysisCheck, AnalysisResult, DeliveryJobStatus, DeliveryPolicySpec } from '@rollcall/crds/types.gen.ts';
import { isWell } from '@rollcall/platform/health-words.ts';
import type { JobContext } from '../job/context.ts';
import type { DueCheck, JobSnapshot, Measurement, RegistrationView } from '../job/snapshot.ts';
import { traitsOf } from '../strategies/strategy.ts';

/**
 * Names of results that no check of a policy can have: those begin with a small letter and have no
 * other.
 */
const SMOKE_TEST = 'smokeTest';
const HEARTBEAT = 'requireHeartbeat';

const MESSAGE_LIMIT = 1024;
/** Longer than any check may last. */
const SLOWEST_CHECK_MS = 300_000;

/** What a verification has come to. */
export interface Verification {
  readonly verdict: 'running' | 'passed' | 'failed';
  readonly message: string;
  /** One per check, measurements that have just come in among them. */
  readonly results: readonly AnalysisResult[];
}

/** The checks of a stage, in the order of their names in messages. */
function checksOf(stage: string | undefined, policy: DeliveryPolicySpec): readonly AnalysisCheck[] {
  const checks = traitsOf(stage)?.checks;
  const { smokeTest } = policy.blueGreen;
  if (checks === 'smokeTest') return smokeTest === undefined ? [] : [{ ...once, name: SMOKE_TEST, http: smokeTest }];
  return checks === 'analysis' ? (policy.analysis ?? []) : [];
}

const once = { initialDelaySeconds: 0, intervalSeconds: 1, count: 1, failureLimit: 0 };

/**
 * Stages in which the registry must have heard from the new version, where the policy asks for it.
 */
function needsHeartbeat(stage: string | undefined, policy: DeliveryPolicySpec): boolean {
  return policy.requireHeartbeat && traitsOf(stage)?.needsHeartbeat === true;
}

/** Whether a stage has anything to verify. */
export function hasChecks(stage: string, policy: DeliveryPolicySpec): boolean {
  return checksOf(stage, policy).length > 0 || needsHeartbeat(stage, policy);
}

/** The measurements that the job waits for. */
export function dueChecks({ job, policy, saved, measurements }: JobSnapshot): readonly DueCheck[] {
  const { status } = job;
  if (status?.failure !== undefined || status?.stageStartedAt === undefined) return [];
  const startedMs = Date.parse(status.stageStartedAt);
  return checksOf(status.stage, saved?.policy ?? policy).flatMap((check) => {
    const result = withMeasurements(resultOf(status, check.name), { check, measurements, sinceMs: startedMs });
    const verdict = verdictOf(check, result);
    if (verdict === 'failed' || (verdict === 'passed' && traitsOf(status.stage)?.outlastsChecks !== true)) return [];
    const { lastMeasuredAt } = result;
    const dueMs =
      lastMeasuredAt === undefined
        ? startedMs + check.initialDelaySeconds * 1000
        : Date.parse(lastMeasuredAt) + check.intervalSeconds * 1000;
    return [{ check, dueAt: new Date(dueMs) }];
  });
}

/** The state of the stage's checks. */
export function verify(context: JobContext): Verification {
  const { status, snapshot, policy, stageStartedMs } = context;
  const checks = checksOf(status.stage, policy);
  const { measurements } = snapshot;
  const results = checks.map((check) =>
    withMeasurements(resultOf(status, check.name), { check, measurements, sinceMs: stageStartedMs }),
  );
  const heard = status.analysis?.filter(({ name }) => name === HEARTBEAT) ?? [];
  const all = [...results, ...(needsHeartbeat(status.stage, policy) ? [heartbeatResult(context)] : heard)];
  const failed = checks.find((check, index) => verdictOf(check, results[index]) === 'failed');
  if (failed !== undefined) return { verdict: 'failed', message: describeFailure(failed, all), results: all };
  const waiting = checks
    .filter((check, index) => verdictOf(check, results[index]) === 'running')
    .map(({ name }) => name)
    .concat(needsHeartbeat(status.stage, policy) && all.at(-1)?.measurements === 0 ? [HEARTBEAT] : []);
  if (waiting.length === 0) return { verdict: 'passed', message: 'All checks have passed', results: all };
  if (context.nowMs >= verificationEndsMs(context)) {
    return {
      verdict: 'failed',
      message: `Not passed in time: ${waiting.map((name) => describeResult(name, all)).join('; ')}`,
      results: all,
    };
  }
  const names = waiting.map((name) => (name === HEARTBEAT ? describeResult(name, all) : name));
  return { verdict: 'running', message: `Waits for the checks ${names.join(', ')}`, results: all };
}

/**
 * When what has not passed by then counts as failed; so that a job ends even when nobody measures.
 */
export function verificationEndsMs({ status, policy, stageStartedMs }: JobContext): number {
  const longest = checksOf(status.stage, policy).map(
    ({ initialDelaySeconds, intervalSeconds, count }) =>
      initialDelaySeconds * 1000 + count * (intervalSeconds * 1000 + SLOWEST_CHECK_MS),
  );
  return stageStartedMs + Math.max(0, ...longest) + policy.rolling.progressDeadlineSeconds * 1000;
}

function verdictOf(check: AnalysisCheck, result: AnalysisResult | undefined): Verification['verdict'] {
  const { measurements = 0, failures = 0 } = result ?? {};
  if (failures > check.failureLimit) return 'failed';
  return measurements >= check.count ? 'passed' : 'running';
}

function describeFailure({ name, count }: AnalysisCheck, results: readonly AnalysisResult[]): string {
  const { failures = 0, measurements = 0 } = results.find((result) => result.name === name) ?? {};
  const which = measurements > count ? 'the last ' : '';
  return `Check ${describeResult(name, results)} (${failures} of ${which}${ofRound(measurements, count)} measurements failed)`;
}

/**
 * Failures are counted in rounds of `count` measurements: how many measurements the last round has.
 */
function ofRound(measurements: number, count: number): number {
  return measurements === 0 ? 0 : ((measurements - 1) % count) + 1;
}

function describeResult(name: string, results: readonly AnalysisResult[]): string {
  const { message } = results.find((result) => result.name === name) ?? {};
  return message === undefined ? name : `${name}: ${message}`;
}

function resultOf({ analysis }: DeliveryJobStatus, name: string): AnalysisResult {
  return analysis?.find((result) => result.name === name) ?? { name, measurements: 0, failures: 0 };
}

/**
 * Adds what is newer than what is known; what was measured before the stage began is of another
 * one.
 */
function withMeasurements(
  known: AnalysisResult,
  news: { readonly check: AnalysisCheck; readonly measurements: readonly Measurement[]; readonly sinceMs: number },
): AnalysisResult {
  let result = known;
  const own = news.measurements.filter(({ check, at }) => check === known.name && at.getTime() >= news.sinceMs);
  for (const { at, passed, message } of own.toSorted((a, b) => a.at.getTime() - b.at.getTime())) {
    if (result.lastMeasuredAt !== undefined && at.getTime() <= Date.parse(result.lastMeasuredAt)) continue;
    const measurements = result.measurements + 1;
    const isNewRound = ofRound(measurements, news.check.count) === 1;
    result = {
      name: result.name,
      measurements,
      failures: (isNewRound ? 0 : result.failures) + (passed ? 0 : 1),
      lastMeasuredAt: at.toISOString(),
      message: message.slice(0, MESSAGE_LIMIT),
    };
  }
  return result;
}

/**
 * Old and new pods may report as one instance, in turns: one report of the new version suffices,
 * and is remembered.
 */
function heartbeatResult({ status, snapshot, job }: JobContext): AnalysisResult {
  const known = resultOf(status, HEARTBEAT);
  if (known.measurements > 0) return known;
  const sinceMs = status.startedAt === undefined ? snapshot.now.getTime() : Date.parse(status.startedAt);
  const faults = snapshot.registrations.map((each) => heartbeatFault(each, job.spec.version, sinceMs));
  const [fault = NOT_REGISTERED] = faults;
  return faults.includes(undefined)
    ? { name: HEARTBEAT, measurements: 1, failures: 0, message: 'The new version has registered and is healthy' }
    : { name: HEARTBEAT, measurements: 0, failures: 0, message: fault };
}

const NOT_REGISTERED = 'the service has no live registration';

/**
 * What was reported before the job began is of other pods, also where they ran the same version.
 */
function heartbeatFault(registration: RegistrationView, version: string, sinceMs: number): string | undefined {
  const { heartbeatAt, currentVersion, health } = registration;
  if (heartbeatAt === undefined) return NOT_REGISTERED;
  if (heartbeatAt.getTime() < sinceMs) return 'the service has sent no heartbeat since the job began';
  const seen = health?.version ?? currentVersion;
  if (seen !== version) return `the registry knows version ${seen ?? 'none'}, not ${version}`;
  if (health === undefined) return 'the service has not reported its health';
  if (health.reportedAt.getTime() < sinceMs) return 'the service has not reported its health since the job began';
  return isWell(health.status) ? undefined : `the service reports itself as ${health.status}`;
}
