import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { isForbidden } from '@rollcall/platform/kube/errors.ts';
import { RefusedError, StaleError } from '../../runtime/apply.ts';
import { TerminalError } from '../../runtime/decision.ts';
import type { Refusal } from '../job/snapshot.ts';

/** A conflict, or a server that is busy, is usual once: so often in a row it is reported. */
const USUAL_FAILURES = 5;
/**
 * What is said of one job changes no more often: some who review put an id of their own into each
 * answer.
 */
const KEPT_MS = 10_000;

/** What the API server refuses of the changes of each job, since the last ones that it made. */
export type Refusals = ReturnType<typeof createRefusals>;

interface Entry {
  readonly failures: number;
  readonly refusal: Refusal | undefined;
  readonly atMs: number;
}

export function createRefusals(clock: Pick<Clock, 'monotonicMs'>) {
  const entries = new Map<string, Entry>();
  return {
    of: (job: DeliveryJob): Refusal | undefined => entries.get(keyOf(job))?.refusal,
    /** All changes of the job were made, or it is gone. */
    forget: (job: DeliveryJob): void => void entries.delete(keyOf(job)),
    /** @returns what is new of it, to be reported as an Event too. */
    note(job: DeliveryJob, error: unknown): Refusal | undefined {
      const known = entries.get(keyOf(job));
      const failures = (known?.failures ?? 0) + 1;
      const nowMs = clock.monotonicMs();
      const found = refusalIn(error, failures);
      const isKept = known?.refusal !== undefined && nowMs - known.atMs < KEPT_MS;
      const refusal = isKept || found === undefined ? known?.refusal : found;
      entries.set(keyOf(job), { failures, refusal, atMs: isKept ? known.atMs : nowMs });
      return refusal === known?.refusal ? undefined : refusal;
    },
  };
}

function keyOf({ metadata }: DeliveryJob): string {
  return metadata.uid ?? '';
}

function refusalIn(error: unknown, failures: number): Refusal | undefined {
  if (!(error instanceof TerminalError || error instanceof RefusedError || error instanceof StaleError)) {
    return undefined;
  }
  const isInvalid = error instanceof TerminalError;
  const isUsual = error instanceof StaleError || (error instanceof RefusedError && !isForbidden(error.cause));
  if (isUsual && failures < USUAL_FAILURES) return undefined;
  return { isInvalid, message: `${error.message}: ${errorMessage(error.cause)}` };
}
