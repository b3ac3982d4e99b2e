import type { Bench, BenchContext } from '../../bench.ts';
import { startLoadGenerator } from '../../load/load-generator.ts';
import { figure } from '../../report.ts';
import { startGateways } from './gateways.ts';
import { queryRows } from './queries.ts';

const SUBGRAPHS = ['users', 'reviews', 'products', 'prices', 'stock', 'shipping', 'ratings'];

/** One replica beside Apollo's gateway and that of mercurius, over the same services. */
export const federation: Bench = {
  name: 'federation',
  measures: 'queries over several services, against the gateways of Apollo and mercurius: CPU',
  async run({ stage, log }: BenchContext) {
    await using stack = new AsyncDisposableStack();
    const subgraphs = await stage.startPeer('subgraphs', []);
    stack.defer(() => subgraphs.stop());
    const urls = new Map(SUBGRAPHS.map((name) => [name, `http://127.0.0.1:${subgraphs.port}/${name}`]));
    const gateways = await startGateways(stack, { stage, log }, urls);
    using generator = startLoadGenerator();
    return [
      figure('other gateways that could be had', gateways.length - 1, ''),
      ...(await queryRows(gateways, { generator, log })),
    ];
  },
};
