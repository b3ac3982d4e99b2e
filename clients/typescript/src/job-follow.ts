import { jobSegment } from './api-call.ts';
import { type BackOff, backOffMs } from './back-off.ts';
import { readEvents } from './event-stream.ts';
import { isFinished, parseJobRecord } from './job-record.ts';
import type { JobRecord } from './job-types.ts';
import { pause } from './pause.ts';
import { RegistryError } from './registry-error.ts';
import type { Transport } from './transport.ts';

/** @public */
export interface FollowJobOptions {
  /** Ends the iteration: it throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * A connection on which nothing arrived for this long is dead, in milliseconds. Default 40,000.
   */
  readonly silenceMs?: number | undefined;
  /** Between attempts to connect. Default 250 ms, doubling up to 5 s, with jitter. */
  readonly retry?: BackOff | undefined;
  /** Nothing can be learned of the job at the moment; that is tried again. */
  readonly onDisconnected?: ((error: RegistryError) => void) | undefined;
  /** After `onDisconnected`: a registry answers again. */
  readonly onConnected?: (() => void) | undefined;
}

const DEFAULT_RETRY: BackOff = { baseMs: 250, maxMs: 5000 };

/**
 * Follows one job by `GET /jobs/{job_id}/events` to its end: the record as it is now, then each one
 * that says something else, the last in phase Succeeded, RolledBack or Failed. Broken streams are
 * resumed; outages of the registry are waited out.
 *
 * @throws RegistryError where the registry refuses, status 404 where there is no such job or it was
 * deleted before it started; the signal's reason where that aborted.
 */
export async function* followJob(
  transport: Transport,
  jobId: string,
  options: FollowJobOptions = {},
): AsyncGenerator<JobRecord, void> {
  const { retry = DEFAULT_RETRY, signal, silenceMs } = options;
  const path = `/jobs/${jobSegment(jobId)}/events`;
  let cursor: string | undefined;
  let known = '';
  let isLost = false;
  for (let failures = 0; ; failures += 1) {
    try {
      for await (const message of readEvents(transport, { path, cursor, silenceMs, signal })) {
        if (message === 'opened') {
          if (isLost) options.onConnected?.();
          isLost = false;
          continue;
        }
        const record = message.event === 'job' ? parseJobRecord(message.data) : undefined;
        // After a reconnect another replica, which lags, may send one from before the cursor.
        if (record === undefined || Number(message.id) < Number(cursor ?? 0)) continue;
        failures = 0;
        cursor = message.id ?? cursor;
        const isNews = message.data !== known;
        known = message.data;
        if (isNews) yield record;
        if (isFinished(record)) return;
      }
    } catch (error) {
      if (signal?.aborted === true || !isPassing(error)) throw error;
      // A stream that only broke is resumed without a word.
      if (failures > 0 && !isLost) {
        isLost = true;
        options.onDisconnected?.(error);
      }
    }
    await pause(backOffMs(failures, retry), { signal });
    signal?.throwIfAborted();
  }
}

/** Whether the answer may be another one the next time. */
function isPassing(error: unknown): error is RegistryError {
  if (!(error instanceof RegistryError)) return false;
  const { status = 503 } = error;
  return status >= 500 || status === 408 || status === 429;
}
