import type { Subgraph } from '../domain/subgraphs.ts';

/** A service that somebody told of, whose schema is new, unless it is said otherwise. */
export function subgraph(service: string, sdl: string, more: Partial<Subgraph> = {}): Subgraph {
  const url = `http://${service}/graphql`;
  return {
    service,
    source: 'introspected',
    candidates: [url],
    url,
    version: null,
    sdl,
    goodSdl: null,
    errors: [],
    failure: null,
    goneAt: null,
    isLeftOut: false,
    updatedAt: new Date(0),
    ...more,
  };
}
