import type { EventStreams } from '@rollcall/platform/http/event-streams.ts';
import type { FastifyReply } from 'fastify';
import type { Feed } from '../../feeds/feed.ts';
import { isFinished, type Job, type JobDirectory } from '../domain/jobs.ts';

export interface JobStreamDeps {
  readonly directory: Pick<JobDirectory, 'find'>;
  readonly feed: Pick<Feed<Job>, 'subscribe'>;
  /** The job as the API shows it. */
  readonly describe: (job: Job) => object;
  /** The open streams of one job each. */
  readonly jobStreams: EventStreams;
}

/**
 * Server-sent events: `job` with the whole record at once and at every change, with the object's
 * version as id. Whoever resumes with the id of the present state receives the next change only.
 * The stream ends after the record of the finished job; after `removed` when the job was deleted
 * before it started.
 *
 * @throws RegistryError TOO_MANY_STREAMS, STREAM_SHARE_USED.
 */
export function streamJob(
  { directory, feed, describe, jobStreams }: JobStreamDeps,
  job: Job,
  reply: FastifyReply,
): void {
  const stream = jobStreams.open(reply);
  if (stream === undefined) return;
  let published: string | undefined;
  const publish = (next: Job, isGone: boolean) => {
    const data = JSON.stringify(describe(next));
    const isEnd = isGone || isFinished(next);
    if (data === published && !isEnd) return;
    published = data;
    const id = next.revision === undefined ? '' : `id: ${next.revision}\n`;
    stream.write(`${id}event: ${isGone && !isFinished(next) ? 'removed' : 'job'}\ndata: ${data}\n\n`);
    if (isEnd) stream.end();
  };
  stream.write('retry: 1000\n\n');
  // It may have changed since it was read.
  const present = newer(job, directory.find(job.id));
  const unsubscribe = feed.subscribe(({ type, item }) => {
    // What was read may be ahead of the feed.
    if (item.id === job.id && (type === 'removed' || newer(present, item) === item)) publish(item, type === 'removed');
  });
  stream.onClose(unsubscribe);
  if (!isFinished(present) && `${present.revision}` === reply.request.headers['last-event-id']) {
    published = JSON.stringify(describe(present));
  }
  publish(present, false);
}

function newer(read: Job, known: Job | undefined): Job {
  return known !== undefined && (known.revision ?? 0) > (read.revision ?? 0) ? known : read;
}
