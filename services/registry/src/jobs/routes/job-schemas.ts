import { deliveryPhases } from '@rollcall/crds/types.gen.ts';
import { documented } from '@rollcall/platform/http/documented.ts';
import { type Static, Type } from 'typebox';
import { Limit, ServiceName, Timestamp, timestamp } from '../../http/schemas.ts';
import { Secret } from '../../webhooks/routes/schemas.ts';
import { type Job, type JobCommand, phaseOf } from '../domain/jobs.ts';
import { type DeliveryStrategy, strategyNames } from '../domain/requested-job.ts';

const orNull = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const Phase = Type.Enum([...deliveryPhases], { description: 'Succeeded, RolledBack and Failed are the ends' });

export const JobRecord = Type.Object({
  job_id: Type.String(),
  service_name: ServiceName,
  operation: Type.Enum(['deploy', 'rollback']),
  version: Type.String({ description: 'What runs when the job has succeeded' }),
  old_version: orNull(Type.String()),
  strategy: orNull(Type.Enum(Object.values(strategyNames))),
  phase: Phase,
  stage: orNull(Type.String({ description: 'More exact than the phase' })),
  step: orNull(Type.Integer({ description: "Of the strategy's steps, counted from 0" })),
  weight: orNull(Type.Integer({ description: 'Percentage of traffic that the new version is to have' })),
  actual_weight: orNull(
    Type.Integer({ description: 'Percentage that it has: by replicas, as near to the weight as whole pods come' }),
  ),
  reason: orNull(Type.String({ description: 'Why it stands where it does: a word for programs' })),
  message: Type.String({ description: 'The same for people; may be empty' }),
  artifact: Type.Object({ url: Type.String(), type: Type.String(), checksum: orNull(Type.String()) }),
  requested_by: Type.String(),
  created_at: Timestamp,
  started_at: orNull(Timestamp),
  finished_at: orNull(Timestamp),
  analysis: Type.Array(
    Type.Object({
      name: Type.String(),
      measurements: Type.Integer(),
      failures: Type.Integer(),
      message: orNull(Type.String()),
    }),
  ),
});

export const JobsQuery = Type.Object({
  service_name: Type.Optional(ServiceName),
  phase: Type.Optional(Phase),
  limit: Type.Optional(Limit),
});

export const JobsResponse = Type.Object({
  jobs: Type.Array(JobRecord, { description: 'Newest first' }),
  total: Type.Integer({ description: 'Number of jobs that match, whatever the limit' }),
});

export const JobParams = Type.Object({
  job_id: Type.String({ description: 'As deploy and rollback answer it', ...documented({ minLength: 1 }) }),
});

/** Where there is no body, there is null. What is signed has to name both, which the proof of the call sees to. */
export const steerBody = (command: JobCommand) =>
  orNull(
    Type.Object({
      job_id: Type.Optional(
        Type.String({ description: 'That of the path; required where a signature proves the call' }),
      ),
      action: Type.Optional(Type.Literal(command, { description: 'Required where a signature proves the call' })),
      webhook_secret: Type.Optional(Secret),
    }),
  );

export const SteerResponse = Type.Object({
  status: Type.Literal('accepted'),
  job_id: Type.String(),
  message: Type.String({ description: 'For people' }),
});

/**
 * @param policyStrategy what will count where neither the job nor the operator has named a strategy
 * yet.
 */
export function jobRecord(job: Job, policyStrategy: DeliveryStrategy | undefined): Static<typeof JobRecord> {
  const strategy = job.strategy ?? policyStrategy;
  const { artifact, startedAt, finishedAt } = job;
  return {
    job_id: job.id,
    service_name: job.serviceName,
    operation: job.operation === 'Deploy' ? 'deploy' : 'rollback',
    version: job.version,
    old_version: job.oldVersion ?? null,
    strategy: strategy === undefined ? null : strategyNames[strategy],
    phase: phaseOf(job),
    stage: job.stage ?? null,
    step: job.step ?? null,
    weight: job.weight ?? null,
    actual_weight: job.actualWeight ?? null,
    reason: job.reason ?? null,
    message: job.message ?? '',
    artifact: { url: artifact.url, type: artifact.type, checksum: artifact.checksum ?? null },
    requested_by: job.requestedBy ?? '',
    created_at: timestamp(job.createdAt),
    started_at: startedAt === undefined ? null : timestamp(startedAt),
    finished_at: finishedAt === undefined ? null : timestamp(finishedAt),
    analysis: job.checks.map(({ name, measurements, failures, message = null }) => ({
      name,
      measurements,
      failures,
      message,
    })),
  };
}
