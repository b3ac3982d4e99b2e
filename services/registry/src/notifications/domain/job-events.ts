import { randomUUID } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import { isFinished, type Job, type Milestone, phaseOf } from '../../jobs/domain/jobs.ts';
import type { ChannelDirectory } from './channel-directory.ts';
import type { NewNotification, NotificationStore, Severity } from './notifications.ts';
import { laneOf } from './notifications.ts';

type JobEventType = 'job.started' | 'job.step' | 'job.succeeded' | 'job.failed' | 'job.rolled_back';

/** Something that happened to a job and is sent once. */
export interface JobEvent {
  /** Its key among the events of the job. */
  readonly key: string;
  readonly type: JobEventType;
  readonly severity: Severity;
  /** The job as it was then, as far as that is known. */
  readonly job: Job;
  /** When it happened, as far as that is known. */
  readonly at: Date | undefined;
}

/**
 * The events of a job as it stands, in the order in which it happened: its start, each step of the
 * strategy, each time it pauses, begins to promote or to roll back, and its end. It holds all that
 * has happened so far, however much of it was seen.
 */
export function dueEvents(job: Job): JobEvent[] {
  // A job that was cancelled while it waited has never started.
  const hasStarted = isFinished(job) ? job.startedAt !== undefined : phaseOf(job) !== 'Pending';
  const course = hasStarted ? courseOf(job) : [];
  const [first = { job }] = course;
  const start = { key: 'started', type: 'job.started', severity: 'info', job: first.job, at: job.startedAt } as const;
  const events = [...(hasStarted ? [start] : []), ...course.flatMap(stepsAt), ...endOf(job)];
  return events.filter(({ key }, index) => events.findIndex((event) => event.key === key) === index);
}

/** A job as it was. */
interface Moment {
  readonly job: Job;
  readonly at: Date | undefined;
}

/** A job whose milestones nobody keeps is known as it stands, and no more. */
function courseOf(job: Job): Moment[] {
  const past = job.milestones.map((milestone) => ({ job: jobAt(job, milestone), at: milestone.at }));
  const isComplete = isFinished(job) || past.some((moment) => moment.job === job);
  return isComplete ? past : [...past, { job, at: undefined }];
}

function jobAt(job: Job, { phase, step, weight }: Milestone): Job {
  if (phaseOf(job) === phase && job.step === step) return job;
  return {
    ...job,
    phase,
    step,
    weight,
    actualWeight: undefined,
    stage: undefined,
    stageStartedAt: undefined,
    reason: undefined,
    message: undefined,
    finishedAt: undefined,
    checks: [],
  };
}

function stepsAt({ job, at }: Moment): JobEvent[] {
  const phase = phaseOf(job);
  if (phase === 'Paused' || phase === 'Promoting' || phase === 'RollingBack') {
    const severity = phase === 'RollingBack' ? 'warning' : 'info';
    return [{ key: `${phase}:${job.step ?? ''}`, type: 'job.step', severity, job, at }];
  }
  return job.step === undefined ? [] : [{ key: `step:${job.step}`, type: 'job.step', severity: 'info', job, at }];
}

function endOf(job: Job): JobEvent[] {
  const end = { key: 'finished', job, at: job.finishedAt };
  const phase = phaseOf(job);
  if (phase === 'Succeeded') return [{ ...end, type: 'job.succeeded', severity: 'info' }];
  if (phase === 'Failed') return [{ ...end, type: 'job.failed', severity: 'error' }];
  return phase === 'RolledBack' ? [{ ...end, type: 'job.rolled_back', severity: 'warning' }] : [];
}

export interface JobEventsDeps {
  readonly channels: ChannelDirectory;
  readonly notifications: Pick<NotificationStore, 'announce' | 'announced'>;
  /** The job as the API shows it. */
  readonly describe: (job: Job) => object;
  readonly clock: Clock;
}

/**
 * Sends what was not sent before to the channels of a job's service, or to the global ones where it
 * has none. It may be done any number of times, by any number of replicas.
 *
 * @returns the keys of all that has been sent of the job.
 */
export async function announceJobEvents(deps: JobEventsDeps, job: Job): Promise<ReadonlySet<string>> {
  const { notifications, clock } = deps;
  const announced = new Set(await notifications.announced(job.uid));
  const news = dueEvents(job).filter(({ key }) => !announced.has(key));
  if (news.length === 0) return announced;
  // Whoever has configured a channel and then asks for a job is to receive its events; a change
  // while the job runs may count late.
  const channels = [...(await deps.channels.find(job.serviceName, announced.size === 0))];
  for (const event of news) {
    const createdAt = clock.now();
    const { type, severity, at = createdAt } = event;
    const { serviceName: service_name } = job;
    const message = sentenceOf(event.job, type);
    const said = { type, service_name, message, severity, timestamp: at.toISOString(), job: deps.describe(event.job) };
    const messages = channels.map(([channel, url]): NewNotification => {
      const payload = { ...said, channel };
      return {
        id: randomUUID(),
        serviceName: service_name,
        channel,
        event: type,
        payload,
        lane: laneOf(url),
        createdAt,
      };
    });
    await notifications.announce({ jobUid: job.uid, event: event.key }, messages);
    announced.add(event.key);
  }
  return announced;
}

function sentenceOf(job: Job, type: JobEventType): string {
  const { serviceName, version, operation, message } = job;
  const what = `${operation === 'Deploy' ? 'Deployment' : 'Rollback'} of '${serviceName}' to version ${version}`;
  const detail = message === undefined || message === '' ? '' : `: ${message}`;
  const weight = job.weight === undefined ? '' : ` at ${job.weight} %`;
  const happened: Readonly<Record<JobEventType, string>> = {
    'job.started': 'has started',
    'job.step': `is ${phaseOf(job)}${weight}${detail}`,
    'job.succeeded': 'has succeeded',
    'job.failed': `has failed${detail}`,
    'job.rolled_back': `was rolled back${detail}`,
  };
  return `${what} ${happened[type]}`;
}
