import { availableParallelism, loadavg } from 'node:os';
import { expect } from 'vitest';
import { type DeliveryStage, loadUntil } from './delivery.ts';
import { countRequests, failuresSince, type LoadReport, shareOf } from './load-report.ts';

/** Requests that each job is watched for, at least. */
const REQUESTS = 3000;

/** Percentage points by which a canary's share of the requests may be off. */
const TOLERANCE = 5;
/** Enough for a share to mean something. */
const SETTLED_REQUESTS = 500;
/**
 * Enough for a share to be as expected, give or take {@link TOLERANCE}, where a choice is made every
 * other request: four times its standard deviation. 20 s on an idle machine.
 */
const MEASURED_REQUESTS = 3000;
/**
 * Until connections from before have been used up and routers know, at most: a second on an idle
 * machine.
 */
const SETTLE_MS = 60_000;

/** Waits until a version has answered since the report. */
export async function untilAnswered(version: string, stage: DeliveryStage, since: LoadReport): Promise<void> {
  const known = since.answers[version]?.count ?? 0;
  const answered = async (): Promise<number> => ((await stage.load()).answers[version]?.count ?? 0) - known;
  await expect.poll(answered, { timeout: 120_000, interval: 200 }).toBeGreaterThan(0);
}

interface Share {
  readonly stage: DeliveryStage;
  /** Percentage that version v2 has to have, give or take {@link TOLERANCE}. */
  readonly weight: number;
  /** Begins the line that reports it. */
  readonly title: string;
}

/** Expects that version v2 gets its share of the requests; the job has to wait meanwhile. */
export async function expectShare({ stage, weight, title }: Share): Promise<void> {
  await settle(stage, weight);
  const from = await stage.load();
  const share = shareOf('v2', from, await loadUntil(stage, from, MEASURED_REQUESTS));
  console.log(`${title} of weight ${weight}: ${share.toFixed(1)} % of the requests`);
  expect(Math.abs(share - weight)).toBeLessThan(TOLERANCE);
}

/** Waits until the share of a moment is right, or the time is over. */
async function settle(stage: DeliveryStage, weight: number): Promise<void> {
  const endsAt = performance.now() + SETTLE_MS;
  let from = await stage.load();
  while (performance.now() < endsAt) {
    const to = await loadUntil(stage, from, SETTLED_REQUESTS);
    if (Math.abs(shareOf('v2', from, to) - weight) < TOLERANCE) return;
    from = to;
  }
}

interface Return {
  readonly stage: DeliveryStage;
  readonly decidedAt: number;
  readonly before: LoadReport;
  /** Begins the lines that report it. */
  readonly title: string;
  /** From the decision to roll back to the last answer of version v2. */
  readonly limitMs: number;
}

/** Expects that all traffic has returned to version v1, in time and without a failed request. */
export async function expectReturn({ stage, decidedAt, before, title, limitMs }: Return): Promise<void> {
  await expectNoFailure(stage, before, title);
  // A pod that ends may answer the last of its connections for a while after the job.
  const after = await untilOnly('v1', stage);
  const lastAt = after.answers['v2']?.lastAt ?? 0;
  // The new version has served, or the time would mean nothing.
  expect(lastAt).toBeGreaterThan(0);
  const returnedMs = Math.max(0, lastAt - decidedAt);
  console.log(`${title}: all traffic on the old version ${returnedMs} ms after the decision to roll back`);
  expect(returnedMs).toBeLessThan(limitMs * slowness());
}

/** Waits until a version answers a thousand requests in a row. @returns what came until then, or the time was over. */
async function untilOnly(version: string, stage: DeliveryStage): Promise<LoadReport> {
  const endsAt = performance.now() + SETTLE_MS;
  for (;;) {
    const from = await stage.load();
    const to = await loadUntil(stage, from, 1000);
    if (shareOf(version, from, to) === 100 || performance.now() > endsAt) return to;
  }
}

/** Expects that no request has failed since the report, of at least {@link REQUESTS}. */
export async function expectNoFailure(stage: DeliveryStage, before: LoadReport, title: string): Promise<LoadReport> {
  const after = await loadUntil(stage, before, REQUESTS);
  const failed = after.failed - before.failed;
  console.log(`${title}: ${failed} of ${countRequests(after) - countRequests(before)} requests failed`);
  const failures = failuresSince(before, after);
  expect({ failed, failures }).toEqual({ failed: 0, failures: [] });
  return after;
}

/** Expects that from now on all requests are answered by this version. */
export async function expectOnly(version: string, stage: DeliveryStage): Promise<void> {
  const from = await stage.load();
  await loadUntil(stage, from, 1000);
  expect(shareOf(version, from, await stage.load())).toBe(100);
}

/** How many times as long everything takes on this machine, if it has more work than processors. */
export function slowness(): number {
  return Math.max(1, (loadavg()[0] ?? 1) / availableParallelism());
}
