import { eventStream } from '@rollcall/platform/http/event-streams.ts';
import { withRawBody } from '@rollcall/platform/http/raw-body.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import type { Static } from 'typebox';
import { RegistryError } from '../../common/errors.ts';
import { rendered, sendRendered } from '../../http/rendered.ts';
import { ConditionalHeaders, conditional, STREAM_REFUSALS, StreamHeaders } from '../../http/schemas.ts';
import { type WatchRoute, watchRoute } from '../../http/watch-route.ts';
import type { AdmissionDeps } from '../../webhooks/domain/call-admission.ts';
import { authorizeCall } from '../../webhooks/domain/webhook-configs.ts';
import { boundProofOf, PROOF_REFUSALS } from '../../webhooks/routes/request-proof.ts';
import { SignatureHeaders } from '../../webhooks/routes/schemas.ts';
import { type Job, type JobCommand, type JobsDeps, listJobs, readJob, steerJob } from '../domain/jobs.ts';
import { JobParams, JobRecord, JobsQuery, JobsResponse, SteerResponse, steerBody } from './job-schemas.ts';
import { type JobStreamDeps, streamJob } from './job-streams.ts';

export interface JobRoutesDeps extends JobsDeps, AdmissionDeps, JobStreamDeps {
  readonly directory: JobsDeps['directory'];
  /** The job as the API shows it. */
  readonly describe: (job: Job) => Static<typeof JobRecord>;
}

const tags = ['jobs'];

/** Delivery jobs: to read, to follow, to promote and to abort. */
export function jobRoutes(app: App, deps: JobRoutesDeps): void {
  readRoutes(app, deps);
  app.get(
    '/jobs/:job_id/events',
    {
      config: { access: 'read', refusals: ['JOB_NOT_FOUND', 'DATABASE_UNAVAILABLE', 'OVERLOADED', ...STREAM_REFUSALS] },
      schema: {
        tags,
        summary: 'Follow a job as server-sent events: `job` with the record now and at every change, to its end',
        description:
          'The last event is the record of the finished job, or `removed` of one that was deleted before it started.',
        headers: StreamHeaders,
        params: JobParams,
        response: eventStream('`data` is the record of the job, `id` the version of the store'),
      },
    },
    async (request, reply) => {
      streamJob(deps, await readJob(deps, request.params.job_id), reply);
    },
  );
  withRawBody(app, (signed) => {
    steerRoute(signed, deps, 'promote');
    steerRoute(signed, deps, 'abort');
  });
}

/** GET /jobs/watch. */
export function jobWatchRoute(
  app: App,
  {
    directory,
    describe,
    feed,
    source,
    streams,
  }: Pick<JobRoutesDeps, 'directory' | 'describe'> & Pick<WatchRoute<Job>, 'feed' | 'source' | 'streams'>,
): void {
  watchRoute(app, {
    feed,
    source,
    streams,
    kind: 'job',
    summary: 'Follow all delivery jobs as server-sent events: added, modified, removed, each with the record',
    record: describe,
    namesake: {
      described: 'the job with the id `watch`',
      send(_request, reply) {
        const job = directory.find('watch');
        if (job !== undefined) void reply.send(describe(job));
        return job !== undefined;
      },
      absent: new RegistryError('JOB_NOT_FOUND', "There is no job 'watch'"),
    },
  });
}

function readRoutes(app: App, deps: JobRoutesDeps): void {
  app.get(
    '/jobs',
    {
      config: { access: 'read', refusals: ['INVALID_SERVICE_NAME'] },
      compress: {},
      schema: {
        tags,
        summary: 'List delivery jobs that run, wait or have finished lately, newest first',
        headers: ConditionalHeaders,
        querystring: JobsQuery,
        response: conditional(JobsResponse),
      },
    },
    (request, reply) => {
      const { service_name: serviceName, phase, limit } = request.query;
      const { jobs, total } = listJobs(deps, { serviceName, phase, limit });
      sendRendered(request, reply, rendered(JSON.stringify({ jobs: jobs.map(deps.describe), total })));
    },
  );
  app.get(
    '/jobs/:job_id',
    {
      config: { access: 'read', refusals: ['JOB_NOT_FOUND', 'DATABASE_UNAVAILABLE', 'OVERLOADED'] },
      schema: {
        tags,
        summary: 'Get one delivery job, also one that has finished and is gone',
        params: JobParams,
        response: { 200: JobRecord },
      },
    },
    async (request) => deps.describe(await readJob(deps, request.params.job_id)),
  );
}

const NOT_PAUSED = { promote: ['JOB_NOT_PAUSED'], abort: [] } as const;
const commands: Readonly<Record<JobCommand, { readonly summary: string; readonly done: string }>> = {
  promote: { summary: 'End the pause that a job is in', done: 'goes on' },
  abort: { summary: 'Roll a job back to the old version, or cancel it while it waits', done: 'is rolled back' },
};

function steerRoute(app: App, deps: JobRoutesDeps, command: JobCommand): void {
  const { summary, done } = commands[command];
  app.post(
    `/jobs/:job_id/${command}`,
    {
      config: {
        refusals: [
          'JOB_NOT_FOUND',
          'JOB_FINISHED',
          ...NOT_PAUSED[command],
          'OVERLOADED',
          'CONTENTION',
          ...PROOF_REFUSALS,
        ],
      },
      schema: {
        tags,
        summary,
        headers: SignatureHeaders,
        params: JobParams,
        body: steerBody(command),
        response: { 200: SteerResponse },
      },
    },
    async (request) => {
      const { job_id } = request.params;
      const proof = boundProofOf(request, 'job_id', job_id);
      const { serviceName } = await readJob(deps, job_id);
      const admission = await authorizeCall(deps, serviceName, proof);
      const job = await admission.carryOut((at, isAgain) =>
        steerJob(deps, job_id, { command, firstAskedAt: isAgain ? at : undefined }),
      );
      const { id: reqId, subject, log } = request;
      log.info({ reqId, job: job.id, service: job.serviceName, subject, command }, 'job steered');
      return { status: 'accepted' as const, job_id, message: `Job '${job_id}' of '${job.serviceName}' ${done}` };
    },
  );
}
