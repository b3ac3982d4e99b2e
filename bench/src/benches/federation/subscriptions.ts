import type { LoadGenerator } from '../../load/load-generator.ts';
import { atLeast, atMost, figure, type Row } from '../../report.ts';
import { watchPeaks } from '../../stage/peaks.ts';
import type { Stage } from '../../stage/stage.ts';
import { startFederation } from './gateways.ts';

const SUBSCRIBERS = 2000;
const CALLERS = 10;
/** Of each caller: what is equal is one subscription at the service. */
const TOPICS = 10;
const DURATION_MS = 10_000;
const TITLE = '2,000 subscriptions';

/** Subscribers of ten callers and ten topics each, of a service that tells of 5.6 events a second in each topic. */
export async function subscriptionRows(
  stage: Stage,
  {
    generator,
    subgraphsUrl,
    log,
  }: { readonly generator: LoadGenerator; readonly subgraphsUrl: string; readonly log: (line: string) => void },
): Promise<Row[]> {
  await using stack = new AsyncDisposableStack();
  const { service, callers, ...federation } = await startFederation(stack, stage, 'federation_subscriptions');
  await federation.introspect('ticks', `${subgraphsUrl}/ticks`);
  const ids = Array.from({ length: CALLERS }, (_, index) => `listener-${index}`);
  const tokens = await Promise.all(ids.map((id) => callers.accessTokenOf(id, '')));
  log(`federation: ${TITLE}`);
  const peaks = watchPeaks([service]);
  const load = await generator.run({
    kind: 'ticks',
    port: service.port,
    path: '/api/graphql',
    tokens,
    topics: TOPICS,
    subscribers: SUBSCRIBERS,
    durationMs: DURATION_MS,
  });
  const [peak = Number.NaN] = await peaks.stop();
  return [
    atLeast(10_000, figure(`${TITLE}: events that reach them`, load.perSecond, '1/s')),
    figure(`${TITLE}: p99 from an event until it has come`, load.latencyMs.p99, 'ms'),
    figure(`${TITLE}: highest memory of the replica`, peak, 'MiB'),
    atMost(0, figure(`${TITLE}: lost`, load.failures, '')),
  ];
}
