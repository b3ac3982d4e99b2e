import { isFinished } from '@rollcall/client/job-record.ts';
import { type JobRecord, jobPhases } from '@rollcall/client/job-types.ts';
import type { ItemChange } from '@rollcall/client/listed-cache.ts';
import { channelScope } from '@rollcall/platform/http/scopes.ts';
import { serviceNameFault } from '@rollcall/platform/service-address.ts';
import { Type } from 'typebox';
import type { ChannelSource } from './channel-source.ts';
import { createTopic, sourceOf, type Topic } from './topic.ts';

const CHANNEL = 'jobs';
const OF_ONE_SERVICE = `${CHANNEL}.`;
const SCOPE = channelScope(CHANNEL);
const CAPACITY = 2000;

const jobEventTypes = [
  'added',
  'started',
  'step',
  'modified',
  'succeeded',
  'failed',
  'rolled_back',
  'removed',
  'synced',
] as const;
type JobEventType = (typeof jobEventTypes)[number];

const JobEvent = Type.Object({
  type: Type.Enum([...jobEventTypes], {
    description: 'The most that has happened since the last event of the job; `modified`: nothing but details',
  }),
  job: Type.Optional(
    Type.Object(
      { job_id: Type.String(), service_name: Type.String(), phase: Type.Enum([...jobPhases]) },
      { description: 'As of GET /jobs/{job_id} of the registry' },
    ),
  ),
});

/** What subscribers receive of a change. */
export function jobEventType({ type, item, previous }: ItemChange<JobRecord, 'removed'>): JobEventType {
  if (type !== 'modified' || previous === undefined) return type;
  if (isFinished(item) && !isFinished(previous)) return endOf(item);
  if (previous.phase === 'Pending' && item.phase !== 'Pending') return 'started';
  return item.phase !== previous.phase || item.step !== previous.step ? 'step' : 'modified';
}

function endOf({ phase }: JobRecord): JobEventType {
  if (phase === 'Succeeded') return 'succeeded';
  return phase === 'RolledBack' ? 'rolled_back' : 'failed';
}

/** The delivery jobs, as the registry sends them. */
export function createJobsTopic(): Topic<JobRecord, 'removed'> {
  return createTopic<JobRecord, 'removed'>({
    keyOf: ({ job_id }) => job_id,
    isSame: (a, b) => JSON.stringify(a) === JSON.stringify(b),
    channelsOf: ({ service_name }) => [CHANNEL, `${OF_ONE_SERVICE}${service_name}`],
    payloadOf: (change) => ({ type: jobEventType(change), job: change.item }),
    capacity: CAPACITY,
  });
}

export function jobsSource(topic: Topic<JobRecord, 'removed'>): ChannelSource {
  const common = { scope: SCOPE, payload: JobEvent };
  return sourceOf(topic, {
    channels: [
      { ...common, address: CHANNEL, summary: 'All delivery jobs, then what happens to them' },
      { ...common, address: `${OF_ONE_SERVICE}{service_name}`, summary: 'The same of one service' },
    ],
    serves: (channel) =>
      channel === CHANNEL ||
      (channel.startsWith(OF_ONE_SERVICE) && serviceNameFault(channel.slice(OF_ONE_SERVICE.length)) === undefined),
  });
}
