import { sleep } from '@rollcall/platform/retry.ts';
import { atMost, figure, type Row } from '../../report.ts';
import { sumOf } from '../../stage/metrics.ts';
import { readProcessTree } from '../../stage/process-tree.ts';
import type { Stage } from '../../stage/stage.ts';
import { startFederation } from './gateways.ts';

const SERVICES = 20;
const TITLE = '20 services of 500 types';
/** The thread of compositions is ended after five seconds without one, and its memory given back after that. */
const SETTLE_MS = 25_000;
/** Of the timer by which prom-client measures: so much passes between two looks at rest. */
const RESTING_MS = 10;

/** A graph that is large, on a replica of its own: how it changes, and what it takes. */
export async function largeGraphRows(
  stage: Stage,
  { subgraphsUrl, log }: { readonly subgraphsUrl: string; readonly log: (line: string) => void },
): Promise<Row[]> {
  await using stack = new AsyncDisposableStack();
  const federation = await startFederation(stack, stage, 'federation_large');
  const { service } = federation;
  log(`federation: ${TITLE}`);
  let lastMs = 0;
  let longestTurnMs = 0;
  let mostMiB = 0;
  await service.metrics();
  for (let index = 0; index < SERVICES; index += 1) {
    lastMs = await federation.introspect(`large-${index}`, `${subgraphsUrl}/large-${index}`);
    // Reading it begins anew.
    const lagMs = sumOf(await service.metrics(), 'nodejs_eventloop_lag_max_seconds') * 1000;
    longestTurnMs = Math.max(longestTurnMs, lagMs - RESTING_MS);
    mostMiB = Math.max(mostMiB, (await readProcessTree(service.process.pid)).rssMiB);
  }
  await sleep(SETTLE_MS);
  const { rssMiB, childrenMiB } = await readProcessTree(service.process.pid);
  return [
    atMost(2, figure(`${TITLE}: the last one is in the graph after`, lastMs / 1000, 's')),
    atMost(50, figure(`${TITLE}: longest turn of the event loop`, longestTurnMs, 'ms')),
    atMost(200, figure(`${TITLE}: memory of the replica with its planner`, rssMiB, 'MiB')),
    figure(`${TITLE}: of that, processes of planners`, childrenMiB, 'MiB'),
    figure(`${TITLE}: memory after each change, at most`, mostMiB, 'MiB'),
  ];
}
