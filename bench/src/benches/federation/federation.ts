import type { Bench, BenchContext } from '../../bench.ts';
import { type LoadGenerator, startLoadGenerator } from '../../load/load-generator.ts';
import { figure, type Row } from '../../report.ts';
import { documentRows } from './documents.ts';
import { startGateways } from './gateways.ts';
import { largeGraphRows } from './large-graph.ts';
import { queryRows } from './queries.ts';
import { subscriptionRows } from './subscriptions.ts';

const SUBGRAPHS = ['users', 'reviews', 'products', 'prices', 'stock', 'shipping', 'ratings'];

/** One replica beside Apollo's gateway and that of mercurius, over the same services. */
export const federation: Bench = {
  name: 'federation',
  measures: 'queries over several services, against other gateways: CPU; subscriptions, a large graph',
  async run({ stage, log }: BenchContext) {
    await using stack = new AsyncDisposableStack();
    const subgraphs = await stage.startPeer('subgraphs', []);
    stack.defer(() => subgraphs.stop());
    const subgraphsUrl = `http://127.0.0.1:${subgraphs.port}`;
    using generator = startLoadGenerator();
    const rows = await comparedRows({ stage, log }, { generator, subgraphsUrl });
    rows.push(...(await subscriptionRows(stage, { generator, subgraphsUrl, log })));
    rows.push(...(await largeGraphRows(stage, { subgraphsUrl, log })));
    return rows;
  },
};

/** They are stopped before anything else is measured. */
async function comparedRows(
  { stage, log }: Pick<BenchContext, 'stage' | 'log'>,
  { generator, subgraphsUrl }: { readonly generator: LoadGenerator; readonly subgraphsUrl: string },
): Promise<Row[]> {
  await using stack = new AsyncDisposableStack();
  const urls = new Map(SUBGRAPHS.map((name) => [name, `${subgraphsUrl}/${name}`]));
  const gateways = await startGateways(stack, { stage, log }, urls);
  return [
    figure('other gateways that could be had', gateways.length - 1, ''),
    ...(await queryRows(gateways, { generator, log })),
    ...(await documentRows(gateways, { generator, log })),
  ];
}
