import type { InstanceRecord } from '@rollcall/client/registry-types.ts';
import type { Outline } from '../domain/ports.ts';
import type { News } from '../domain/subgraphs.ts';

/** Below the URL of a service, where nothing else is registered: the first that answers as GraphQL. */
const USUAL_PATHS = ['/api/graphql', '/graphql'];

/** A service with GraphQL as the registry has it. */
export interface Sighting {
  readonly service: string;
  /** Of each instance the URLs where its GraphQL may be, the healthy instances first. */
  readonly places: readonly Place[];
  /** Which instances these are: another text for one that registered anew. */
  readonly instances: string;
}

interface Place {
  readonly isHealthy: boolean;
  readonly candidates: readonly string[];
  readonly version: string | null;
}

/** Pure. The services with GraphQL among instances, but for those whose URL is none. */
export function sightingsOf(instances: readonly InstanceRecord[]): readonly Sighting[] {
  const withGraphql = instances.filter(
    ({ capabilities, service_url }) => capabilities.includes('graphql') && URL.canParse(service_url),
  );
  const byService = Map.groupBy(withGraphql, ({ service_name }) => service_name);
  return [...byService].map(([service, ofService]) => ({
    service,
    places: ofService.toSorted(healthyFirst).map(placeOf),
    instances: ofService.map(lifeOf).toSorted().join(' '),
  }));
}

function healthyFirst(a: InstanceRecord, b: InstanceRecord): number {
  if (a.healthy !== b.healthy) return a.healthy ? -1 : 1;
  return (a.instance_id ?? '') < (b.instance_id ?? '') ? -1 : 1;
}

function lifeOf({ instance_id, registered_at }: InstanceRecord): string {
  return `${instance_id ?? ''}@${registered_at}`;
}

function placeOf({ service_url, graphql_path, version, healthy }: InstanceRecord): Place {
  const base = service_url.replace(/\/+$/, '');
  const paths = graphql_path === undefined ? USUAL_PATHS : [graphql_path];
  return { isHealthy: healthy, candidates: paths.map((path) => `${base}${path}`), version: version ?? null };
}

/**
 * Pure. What the registry has that is not known yet, and the other way round. A place that is known
 * and still there stays: instances that come and go are no news.
 *
 * @param hasBeenAbsent whether a service has been missing for so long that it is gone.
 */
export function newsOf(
  sightings: readonly Sighting[],
  known: readonly Outline[],
  hasBeenAbsent: (service: string) => boolean,
): readonly News[] {
  const outlines = new Map(known.map((outline) => [outline.service, outline]));
  const registered = sightings.flatMap(({ service, places }) => {
    const outline = outlines.get(service);
    if (outline?.source === 'introspected' || outline?.isLeftOut === true) return [];
    const place = places.find(({ candidates }) => isKnown(candidates, outline)) ?? places[0];
    if (place === undefined || (outline !== undefined && isNoNews(place, outline))) return [];
    const { candidates, version } = place;
    return [{ kind: 'registered' as const, service, candidates, version }];
  });
  const gone = known
    .filter(({ source, goneAt, service }) => source === 'registered' && goneAt === null && hasBeenAbsent(service))
    .map(({ service }) => ({ kind: 'gone' as const, service }));
  return [...registered, ...gone];
}

function isKnown(candidates: readonly string[], outline: Outline | undefined): boolean {
  return outline !== undefined && candidates.join(' ') === outline.candidates.join(' ');
}

function isNoNews({ candidates, version }: Place, outline: Outline): boolean {
  return isKnown(candidates, outline) && version === outline.version && outline.goneAt === null;
}

/**
 * Pure. Whether a service that was found at a URL is the one that is registered: who tells of another
 * one by the same name must not be told who calls.
 */
export function isRegisteredAt(sighting: Sighting | undefined, url: string): boolean {
  return sighting?.places.some(({ candidates }) => candidates.includes(url)) === true;
}

/**
 * Pure. Where the GraphQL of a service is that was found at a URL: at the same path of each healthy
 * instance, else of each.
 *
 * @param sighting undefined: it is not registered.
 */
export function urlsOf(sighting: Sighting | undefined, url: string): readonly string[] {
  const places = sighting?.places ?? [];
  const path = places.map(({ candidates }) => candidates.indexOf(url)).find((index) => index !== -1);
  if (path === undefined) return [url];
  const healthy = places.filter(({ isHealthy }) => isHealthy);
  const urls = (healthy.length > 0 ? healthy : places).flatMap(({ candidates }) => candidates[path] ?? []);
  return [...new Set(urls)];
}
