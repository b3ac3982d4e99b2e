import { type JobContext, readyIn } from '../job/context.ts';
import type { PodGroup } from '../job/snapshot.ts';
import { weightOnRoutes } from './http-route.ts';
import { ownServices, pinOf } from './selector.ts';

/**
 * The percentage of traffic that goes to the new version, by where routes and Services lead and how
 * many pods are ready there; of several Services, the mean. Undefined of rolling updates, which go
 * from one version to the other pod by pod.
 */
export function actualWeight(context: JobContext): number | undefined {
  const { cluster, extra, saved } = context;
  if (saved.strategy === 'Rolling') return undefined;
  const groups = [...(cluster?.replicaSets ?? []), ...(extra === undefined ? [] : [extra])];
  const pins = ownServices(context).map(({ service }) => pinOf(service));
  const shares = (pins.length === 0 ? [undefined] : pins).map((pin) =>
    newShare(
      context,
      groups.filter(({ hash }) => pin === undefined || hash === pin),
    ),
  );
  const byServices = shares.reduce((sum, share) => sum + share, 0) / shares.length;
  const byRoutes = weightOnRoutes(context);
  return Math.round(byRoutes + ((100 - byRoutes) * byServices) / 100);
}

/** The percentage of the ready pods that run the new version. */
function newShare({ extra, template }: JobContext, groups: readonly PodGroup[]): number {
  const ready = readyIn(groups);
  if (ready === 0) return 0;
  const isNew = (group: PodGroup) => group === extra || (template === 'target' && group.current);
  return (100 * readyIn(groups.filter(isNew))) / ready;
}
