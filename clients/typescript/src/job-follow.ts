import { get, isSuccess, jobSegment, unexpectedAnswer } from './api-call.ts';
import { type BackOff, backOffMs } from './back-off.ts';
import { readEvents } from './event-stream.ts';
import { createJobChanges, type JobChanges, parseJobRecord } from './job-record.ts';
import type { JobRecord } from './job-types.ts';
import { pause } from './pause.ts';
import { errorFromAnswer, RegistryError } from './registry-error.ts';
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
  /**
   * Nothing can be learned of the job at the moment; the next attempt comes after so many
   * milliseconds.
   */
  readonly onDisconnected?: ((loss: { readonly error: unknown; readonly retryInMs: number }) => void) | undefined;
  /** After `onDisconnected`: a registry answers again. */
  readonly onConnected?: (() => void) | undefined;
}

const DEFAULT_RETRY: BackOff = { baseMs: 250, maxMs: 5000 };

/**
 * A new stream begins with the record: where that does not come, something on the way holds events
 * back.
 */
const FIRST_SILENCE_MS = 10_000;

/**
 * A connection that ends sooner counts as a failure, so that one which always ends at once is not
 * retried at once.
 */
const STABLE_AFTER_MS = 5000;

interface Following {
  readonly transport: Transport;
  readonly jobId: string;
  readonly changes: JobChanges;
  readonly options: FollowJobOptions;
  readonly contact: Contact;
}

/**
 * Follows one job by `GET /jobs/{job_id}/events` to its end: the record as it is now, then each one
 * that says something else, the last in phase Succeeded, RolledBack or Failed. Broken streams are
 * resumed; where no stream can be had, the job is asked for instead, at the pace of `retry`.
 * Outages of the registry are waited out.
 *
 * @throws RegistryError where the registry refuses, status 404 where there is no such job or it was
 * deleted before it started; the signal's reason where that aborted.
 */
export async function* followJob(
  transport: Transport,
  jobId: string,
  options: FollowJobOptions = {},
): AsyncGenerator<JobRecord, void> {
  const { retry = DEFAULT_RETRY, signal } = options;
  const changes = createJobChanges();
  const contact = createContact(options);
  const following = { transport, jobId, changes, options, contact };
  for (let failures = 0; ; failures += 1) {
    const openedAt = performance.now();
    const heard = yield* byEvents(following);
    if (changes.areOver()) return;
    const error = heard ? undefined : yield* byAsking(following);
    if (changes.areOver()) return;
    if (performance.now() - openedAt >= STABLE_AFTER_MS) failures = 0;
    const retryInMs = backOffMs(failures, retry);
    if (error !== undefined) contact.lost({ error, retryInMs });
    await pause(retryInMs, { signal });
    if (signal?.aborted === true) throw signal.reason;
  }
}

/**
 * Reads one connection.
 *
 * @returns whether it brought a record; why it ended does not matter, a poll will show.
 */
async function* byEvents(following: Following): AsyncGenerator<JobRecord, boolean> {
  const { transport, jobId, changes, options, contact } = following;
  const { signal, silenceMs } = options;
  const cursor = changes.cursor();
  // Resumed, a stream has nothing to say as long as nothing happens.
  const firstSilenceMs = cursor === undefined ? Math.min(FIRST_SILENCE_MS, silenceMs ?? FIRST_SILENCE_MS) : undefined;
  const path = `/jobs/${jobSegment(jobId)}/events`;
  let heard = false;
  try {
    for await (const message of readEvents(transport, { path, cursor, silenceMs, firstSilenceMs, signal })) {
      contact.made();
      const record = message === 'opened' || message.event !== 'job' ? undefined : parseJobRecord(message.data);
      if (message === 'opened' || record === undefined) continue;
      heard = true;
      const news = changes.take(record, message.id);
      if (news !== undefined) yield news;
      if (changes.areOver()) break;
    }
  } catch {
    if (signal?.aborted === true) throw signal.reason;
  }
  return heard;
}

/**
 * Asks once.
 *
 * @returns why there was no answer, where there may be one later.
 * @throws what will not change.
 */
async function* byAsking(following: Following): AsyncGenerator<JobRecord, unknown> {
  const { changes, contact, options } = following;
  try {
    const record = await readJob(following);
    contact.made();
    const news = changes.take(record);
    if (news !== undefined) yield news;
    return undefined;
  } catch (error) {
    if (options.signal?.aborted === true) throw options.signal.reason;
    if (isFinal(error)) throw error;
    return error;
  }
}

async function readJob({ transport, jobId, options }: Following): Promise<JobRecord> {
  const answer = await transport.send(get(`/jobs/${jobSegment(jobId)}`, options.signal));
  if (!isSuccess(answer)) throw errorFromAnswer(answer.status, answer.text, answer.server);
  const record = parseJobRecord(answer.text);
  if (record === undefined) throw unexpectedAnswer(answer);
  return record;
}

/** Answers that will be the same the next time. */
function isFinal(error: unknown): boolean {
  if (!(error instanceof RegistryError)) return true;
  const { status = 503 } = error;
  return status < 500 && status !== 408 && status !== 429;
}

/** Reports the loss of the registry and its return, each once. */
interface Contact {
  made(): void;
  lost(loss: { readonly error: unknown; readonly retryInMs: number }): void;
}

function createContact({ onDisconnected, onConnected }: FollowJobOptions): Contact {
  let isLost = false;
  return {
    made() {
      if (isLost) onConnected?.();
      isLost = false;
    },
    lost(loss) {
      isLost = true;
      onDisconnected?.(loss);
    },
  };
}
