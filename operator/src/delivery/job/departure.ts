import { isServed } from '../traffic/selector.ts';
import type { JobContext } from './context.ts';
import type { Departure } from './snapshot.ts';

/**
 * What a job does otherwise than it was asked to: what was decided when it began, and that there is
 * no traffic to move. That is observed, as Services come and go during a job.
 */
export function departureOf({ saved, status, around }: JobContext): Departure | undefined {
  if (saved.strategy === 'Rolling' || isServed(around)) return saved.departure;
  const isShare = saved.strategy === 'Canary' && saved.routes.length === 0;
  const instead = isShare ? 'Weights are shares of the pods' : 'No traffic is switched';
  const message = `${instead}, as no Service leads to the pods of Deployment ${status.workload?.name}`;
  const others = saved.departure === undefined ? '' : `. ${saved.departure.message}`;
  return { reason: 'NoService', message: `${message}${others}` };
}

/** A message that also says what the job does otherwise than asked. */
export function withDeparture(departure: Departure | undefined, message: string): string {
  return departure === undefined ? message : `${message} (${departure.message})`;
}
