import type { App } from '@rollcall/platform/http/server.ts';
import { RegistryError } from '../../common/errors.ts';
import type { FeedSource } from '../../feeds/catch-up.ts';
import { createEventStreams } from '../../http/event-streams.ts';
import { type Exchange, streamFeed } from '../../http/feed-stream.ts';
import { eventStream, STREAM_REFUSALS, StreamHeaders } from '../../http/schemas.ts';
import type { JobFeed } from '../domain/job-feed.ts';
import type { Job, JobDirectory } from '../domain/jobs.ts';

export interface JobWatchDeps {
  readonly feed: JobFeed;
  readonly source: FeedSource;
  /** The job as the API shows it. */
  readonly describe: (job: Job) => object;
}

/** Open streams of the changes of all jobs. */
export interface JobWatchers {
  /**
   * @throws RegistryError TOO_MANY_STREAMS, STREAM_SHARE_TAKEN; STORE_UNAVAILABLE before the local
   * copy is complete, and to a subscriber that knows more than this replica can receive.
   */
  open(exchange: Exchange): Promise<void>;
  closeAll(): void;
}

export function createJobWatchers({ feed, source, describe }: JobWatchDeps): JobWatchers {
  const streams = createEventStreams();
  return {
    async open(exchange) {
      // An empty list would count as the truth.
      if (feed.version === undefined) {
        throw new RegistryError('STORE_UNAVAILABLE', 'The jobs have not been read from the Kubernetes API yet');
      }
      await streamFeed(streams, exchange, { feed, source, data: ({ job }) => JSON.stringify(describe(job)) });
    },
    closeAll: () => streams.closeAll(),
  };
}

export interface JobWatchRouteDeps extends Pick<JobWatchDeps, 'describe'> {
  readonly watchers: JobWatchers;
  /** A job may be called `watch`, too. */
  readonly directory: Pick<JobDirectory, 'find'>;
}

/** GET /jobs/watch, unless there is a job of that id and the caller did not ask for a stream. */
export function jobWatchRoute(app: App, { watchers, directory, describe }: JobWatchRouteDeps): void {
  app.get(
    '/jobs/watch',
    {
      config: { access: 'read', refusals: ['JOB_NOT_FOUND', ...STREAM_REFUSALS] },
      schema: {
        tags: ['jobs'],
        summary: 'Follow all delivery jobs as server-sent events: added, modified, removed, each with the record',
        description:
          'Begins with every job as `added`, then `synced`. Resumes after Last-Event-ID at any replica; `reset` says that the id is too ' +
          'old and everything comes anew. To who accepts no event stream it is the job with the id `watch`.',
        headers: StreamHeaders,
        response: eventStream('`data` is the record of the job, `id` the version of the store'),
      },
    },
    async (request, reply) => {
      const { accept = '*/*' } = request.headers;
      const namesake = accept.includes('text/event-stream') ? undefined : directory.find('watch');
      if (namesake !== undefined) void reply.send(describe(namesake));
      else if (/text\/event-stream|\*/.test(accept)) await watchers.open({ request, reply });
      else throw new RegistryError('JOB_NOT_FOUND', "There is no job 'watch'");
    },
  );
}
