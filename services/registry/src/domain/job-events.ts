import { randomUUID } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { DeliveryPayload, DeliveryStore, NewDelivery, Severity } from './deliveries.ts';
import { isFinished, type Job, phaseOf } from './jobs.ts';
import { laneOf } from './notifications.ts';
import { ALL_SERVICES, type WebhookConfigsDeps } from './webhook-configs.ts';

type JobEventType = 'job.started' | 'job.step' | 'job.succeeded' | 'job.failed' | 'job.rolled_back';

/** Something that happened to a job and is told once. */
export interface JobEvent {
  /** What it is told once as. */
  readonly key: string;
  readonly type: JobEventType;
  readonly severity: Severity;
}

/**
 * What there is to tell of a job as it stands. Its start and its end are told whenever they are seen; a step in between only while
 * the job is there: at each step of the strategy, and when it pauses, begins to promote or to roll back.
 */
export function dueEvents(job: Job): JobEvent[] {
  const phase = phaseOf(job);
  const events: JobEvent[] = [];
  // A job that was cancelled while it waited has never started.
  const started = isFinished(job) ? job.startedAt !== undefined : phase !== 'Pending';
  if (started) events.push({ key: 'started', type: 'job.started', severity: 'info' });
  if (phase === 'Succeeded') events.push({ key: 'finished', type: 'job.succeeded', severity: 'info' });
  else if (phase === 'Failed') events.push({ key: 'finished', type: 'job.failed', severity: 'error' });
  else if (phase === 'RolledBack') events.push({ key: 'finished', type: 'job.rolled_back', severity: 'warning' });
  else if (phase === 'Paused' || phase === 'Promoting' || phase === 'RollingBack') {
    const severity = phase === 'RollingBack' ? 'warning' : 'info';
    events.push({ key: `${phase}:${job.step ?? ''}`, type: 'job.step', severity });
  } else if (phase !== 'Pending' && job.step !== undefined) {
    events.push({ key: `step:${job.step}`, type: 'job.step', severity: 'info' });
  }
  return events;
}

export interface JobEventsDeps extends WebhookConfigsDeps {
  readonly deliveries: Pick<DeliveryStore, 'tell' | 'told'>;
  /** The job as the API shows it. */
  readonly describe: (job: Job) => object;
  readonly clock: Clock;
}

/**
 * Tells the channels of a job's service, or the global ones where it has none, what was not told before. It may be done any number
 * of times, by any number of replicas.
 *
 * @returns the keys of all that has been told of the job.
 */
export async function tellJobEvents(deps: JobEventsDeps, job: Job): Promise<ReadonlySet<string>> {
  const { deliveries, clock } = deps;
  const told = new Set(await deliveries.told(job.uid));
  const news = dueEvents(job).filter(({ key }) => !told.has(key));
  if (news.length === 0) return told;
  const channels = await channelsOf(deps, job.serviceName);
  for (const event of news) {
    const createdAt = clock.now();
    const messages = channels.map(([channel, url]): NewDelivery => {
      const payload = payloadOf(deps, { job, event, channel, createdAt });
      const { serviceName } = job;
      return { id: randomUUID(), serviceName, channel, event: event.type, payload, lane: laneOf(url), createdAt };
    });
    await deliveries.tell({ jobUid: job.uid, event: event.key }, messages);
    told.add(event.key);
  }
  return told;
}

async function channelsOf({ configs }: WebhookConfigsDeps, serviceName: string): Promise<[string, string][]> {
  const own = await configs.find(serviceName);
  const settings = own === undefined || own.endpoints.size === 0 ? await configs.find(ALL_SERVICES) : own;
  return [...(settings?.endpoints ?? [])];
}

interface Occasion {
  readonly job: Job;
  readonly event: JobEvent;
  readonly channel: string;
  readonly createdAt: Date;
}

function payloadOf({ describe }: JobEventsDeps, { job, event, channel, createdAt }: Occasion): DeliveryPayload {
  return {
    type: event.type,
    service_name: job.serviceName,
    channel,
    message: sentenceOf(job, event.type),
    severity: event.severity,
    timestamp: createdAt.toISOString(),
    job: describe(job),
  };
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
