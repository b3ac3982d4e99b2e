import type { FastifyReply, FastifyRequest } from 'fastify';
import { createEventStreams } from '../../http/event-streams.ts';
import { isFinished, type Job, type JobDirectory } from '../domain/jobs.ts';

export interface JobStreamsDeps {
  readonly directory: Pick<JobDirectory, 'find' | 'follow'>;
  /** The job as the API shows it. */
  readonly describe: (job: Job) => object;
}

/** Open streams of the changes of one job each. */
export interface JobStreams {
  /** @throws RegistryError TOO_MANY_STREAMS, STREAM_SHARE_TAKEN. */
  open(job: Job, request: FastifyRequest, reply: FastifyReply): void;
  closeAll(): void;
}

/**
 * Server-sent events: `job` with the whole record at once and at every change, with the object's
 * version as id. Whoever resumes with the id of the present state receives the next change only.
 * The stream ends after the record of the finished job; after `removed` when the job was deleted
 * before it started.
 */
export function createJobStreams({ directory, describe }: JobStreamsDeps): JobStreams {
  const streams = createEventStreams();

  return {
    open(job, request, reply) {
      const stream = streams.open(reply);
      if (stream === undefined) return;
      let published: string | undefined;
      const publish = (event: 'job' | 'removed', next: Job) => {
        const id = next.revision === undefined ? '' : `id: ${next.revision}\n`;
        published = JSON.stringify(describe(next));
        stream.write(`${id}event: ${event}\ndata: ${published}\n\n`);
      };
      const follow = (next: Job, gone: boolean) => {
        const isEnd = gone || isFinished(next);
        if (isEnd) publish(isFinished(next) ? 'job' : 'removed', next);
        // Finalizers and labels are nothing that the record shows.
        else if (JSON.stringify(describe(next)) !== published) publish('job', next);
        if (isEnd) stream.end();
      };
      stream.write('retry: 1000\n\n');
      // It may have changed since it was read.
      const present = newer(job, directory.find(job.id));
      if (!isFinished(present) && `${present.revision}` === request.headers['last-event-id']) {
        published = JSON.stringify(describe(present));
      }
      stream.onClose(directory.follow(job.id, follow));
      follow(present, false);
    },
    closeAll: () => streams.closeAll(),
  };
}

function newer(read: Job, known: Job | undefined): Job {
  return known !== undefined && (known.revision ?? 0) > (read.revision ?? 0) ? known : read;
}
