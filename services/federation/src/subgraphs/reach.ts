import type { HttpAnswer } from '@rollcall/platform/outbound/exchange.ts';
import type { ProcessContext } from '@rollcall/platform/process/main.ts';
import type { FederationConfig } from '../config.ts';
import { isRegisteredAt, type Sighting, urlsOf } from '../discovery/registrations.ts';
import type { SubgraphReach } from '../graphs/build-graph.ts';
import { type CallContext, createCallSubgraph } from './call-subgraph.ts';
import type { PassedHeaders } from './headers/passed-headers.ts';
import type { SubgraphIdentities } from './identities.ts';
import { createShow } from './masking.ts';
import { createOpenSource, type OpenSourceDeps } from './open-source.ts';
import { createSharedCalls } from './shared-calls.ts';
import { createTraffic } from './traffic.ts';

export interface ReachDeps extends Pick<OpenSourceDeps, 'dispatcher' | 'mayConnect'> {
  readonly identities: SubgraphIdentities | undefined;
  readonly headersFor: PassedHeaders['forService'];
  /** Where a service is registered. */
  readonly sighting: (service: string) => Sighting | undefined;
  /** Whether a service is in the graph in force. */
  readonly isInGraph: (service: string) => boolean;
}

/** How graphs reach their subgraphs, whose URLs they have by name. All graphs of a replica share what is counted. */
export function createReach(
  { config, clock, log, metrics }: ProcessContext<FederationConfig>,
  { identities, headersFor, sighting, isInGraph: isKnown, ...connections }: ReachDeps,
): (urls: ReadonlyMap<string, string>) => SubgraphReach<CallContext> {
  const timeoutMs = config.subgraphTimeoutMs;
  const traffic = createTraffic({ clock, log, metrics, isKnown, mostCalls: config.mostSubgraphCalls, timeoutMs });
  const queries = createSharedCalls<HttpAnswer>();
  let generations = 0;
  return (urls) => {
    generations += 1;
    const deps: Omit<OpenSourceDeps, 'mayConnect'> = {
      dispatcher: connections.dispatcher,
      urlsOf(subgraph) {
        const url = urls.get(subgraph);
        return url === undefined ? [] : urlsOf(sighting(subgraph), url);
      },
      async identityFor(caller, subgraph) {
        const url = urls.get(subgraph);
        const isRegistered = url !== undefined && isRegisteredAt(sighting(subgraph), url);
        return isRegistered ? ((await identities?.headersFor(caller, subgraph)) ?? {}) : {};
      },
      headersFor,
      limitBytes: config.subgraphAnswerBytes,
      show: createShow(config.areErrorsMasked, log),
      log,
    };
    return {
      callSubgraph: createCallSubgraph({ ...deps, traffic, timeoutMs, queries, generation: generations }),
      openSource: createOpenSource({ ...deps, mayConnect: connections.mayConnect }),
    };
  };
}
