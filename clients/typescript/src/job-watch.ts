import type { EventSourceMessage } from 'eventsource-parser';
import { readEvents } from './event-stream.ts';
import { parseJobRecord } from './job-record.ts';
import type { JobRecord } from './job-types.ts';
import type { Transport } from './transport.ts';
import type { WatchOptions } from './watch.ts';

/**
 * Events of `GET /jobs/watch`. `cursor` is the event's id: a later watch that names it resumes
 * after the event.
 *
 * - `opened`: the registry accepted the watch; no message of its, always the first.
 * - `added`, `modified`, `removed`: what happened to one job, with its record at that moment.
 * - `synced`: every job has now been sent.
 * - `reset`: the cursor was too old to resume from; everything follows, up to `synced`.
 */
export type JobWatchEvent =
  | JobEvent
  | { readonly type: 'opened' | 'synced' | 'reset'; readonly cursor: string | undefined };

const jobEventTypes = ['added', 'modified', 'removed'] as const;

interface JobEvent {
  readonly type: (typeof jobEventTypes)[number];
  readonly job: JobRecord;
  readonly cursor: string | undefined;
}

/**
 * Reads one connection of the watch until it ends. An ended connection says nothing about the jobs:
 * connect again with the last cursor.
 *
 * @throws RegistryError where it cannot be opened or breaks; the signal's reason where that
 * aborted.
 */
export async function* watchJobs(transport: Transport, options: WatchOptions): AsyncGenerator<JobWatchEvent, void> {
  for await (const message of readEvents(transport, { path: '/jobs/watch', ...options })) {
    const event = message === 'opened' ? { type: message, cursor: undefined } : parseJobWatchEvent(message);
    if (event !== undefined) yield event;
  }
}

/**
 * @returns undefined for messages that this version does not know or that are not well-formed: they
 * are skipped.
 */
export function parseJobWatchEvent({ event, id, data }: EventSourceMessage): JobWatchEvent | undefined {
  if (event === 'synced' || event === 'reset') return { type: event, cursor: id };
  const type = jobEventTypes.find((known) => known === event);
  const job = parseJobRecord(data);
  return type && job && { type, job, cursor: id };
}
