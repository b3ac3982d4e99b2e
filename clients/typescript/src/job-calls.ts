import { type CallOptions, get, jobSegment, json, post, query, signed, type WebhookOptions } from './api-call.ts';
import { type FollowJobOptions, followJob } from './job-follow.ts';
import type { AcceptedJobCall, JobFilter, JobList, JobRecord } from './job-types.ts';
import type { ApiRequest, Transport } from './transport.ts';

/** The endpoints under `/jobs`. */
export function jobCalls(transport: Transport) {
  return {
    /** `GET /jobs`, newest first. */
    listJobs: ({ service_name, phase, limit }: JobFilter = {}, { signal }: CallOptions = {}): Promise<JobList> =>
      json(transport, get(`/jobs${query({ service_name, phase, limit })}`, signal)),

    /** `GET /jobs/{job_id}`. */
    getJob: async (jobId: string, { signal }: CallOptions = {}): Promise<JobRecord> =>
      json(transport, get(`/jobs/${jobSegment(jobId)}`, signal)),

    /** `GET /jobs/{job_id}/events` to the end of the job; see {@link followJob}. */
    followJob: (jobId: string, options: FollowJobOptions = {}): AsyncGenerator<JobRecord, void> =>
      followJob(transport, jobId, options),

    /** `POST /jobs/{job_id}/promote`: ends the pause it is in. Status 409: it is in none. */
    promoteJob: async (jobId: string, options: WebhookOptions = {}): Promise<AcceptedJobCall> =>
      json(transport, signed(steer(jobId, 'promote'), options)),

    /**
     * `POST /jobs/{job_id}/abort`: returns all traffic to the old version. Status 409: it has
     * finished.
     */
    abortJob: async (jobId: string, options: WebhookOptions = {}): Promise<AcceptedJobCall> => {
      const request = { ...steer(jobId, 'abort'), repeatable: true };
      return json(transport, signed(request, options));
    },
  };
}

/**
 * The body repeats what the path says, so that a signature of it is good for this alone: without,
 * the registry refuses it.
 */
function steer(jobId: string, command: 'promote' | 'abort'): ApiRequest {
  return post(`/jobs/${jobSegment(jobId)}/${command}`, { job_id: jobId, action: command });
}
