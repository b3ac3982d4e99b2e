import { annotations } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';

/** Which job makes another pointless, or has it undone. */
export function supersededMessage({ metadata, spec }: DeliveryJob): string {
  return `Job ${jobName({ metadata })} was asked for since, and brings ${spec.version}`;
}

/** The id of a job, by which its users know it. */
export function jobName({ metadata }: Pick<DeliveryJob, 'metadata'>): string {
  return metadata.annotations?.[annotations.jobId] ?? metadata.name;
}
