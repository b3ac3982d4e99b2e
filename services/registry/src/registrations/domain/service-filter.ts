import type { DirectoryFilter } from './directory.ts';
import { isHealthy } from './instances.ts';
import type { Capability, Registration } from './registration.ts';

/** Which services are asked for: those with an instance to which all of it applies. */
export interface ServiceFilter {
  readonly capability?: Capability | undefined;
  /** Start of the name. */
  readonly prefix?: string | undefined;
  readonly zone?: string | undefined;
  /** True: only instances that count as healthy. */
  readonly healthy?: boolean | undefined;
  /** Entries that an instance has. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

export function directoryFilter({ prefix = '', ...wanted }: ServiceFilter): DirectoryFilter {
  const { capability, zone, healthy = false, metadata = {} } = wanted;
  const entries = Object.entries(metadata);
  const hasEntries = (instance: Registration): boolean =>
    entries.every(([key, value]) => instance.metadata?.[key] === value);
  return {
    prefix,
    matches: (instance) =>
      (capability === undefined || instance.capabilities.includes(capability)) &&
      (zone === undefined || instance.zone === zone) &&
      (!healthy || isHealthy(instance)) &&
      hasEntries(instance),
  };
}

/** Which part of a list is asked for. */
export interface PageRequest {
  /** The last name of the page before; empty: from the start. */
  readonly after: string;
  /** Entries at most. */
  readonly limit: number;
}

export interface Page<Entry> {
  readonly entries: readonly Entry[];
  /** Of all pages. */
  readonly total: number;
  /** What the next page comes after; undefined: there is none. */
  readonly next: string | undefined;
}

/** @param list in the order of names. */
export function pageOf<Entry extends { readonly registration: Registration }>(
  list: Iterable<Entry>,
  { after, limit }: PageRequest,
): Page<Entry> {
  const entries: Entry[] = [];
  let total = 0;
  let hasMore = false;
  for (const entry of list) {
    total += 1;
    if (entry.registration.serviceName <= after) continue;
    if (entries.length < limit) entries.push(entry);
    else hasMore = true;
  }
  return { entries, total, next: hasMore ? entries.at(-1)?.registration.serviceName : undefined };
}
