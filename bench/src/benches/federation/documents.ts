import type { LoadGenerator } from '../../load/load-generator.ts';
import { alternate, type Contestant, failuresOf, medianCpu, type Runs } from '../../load/rounds.ts';
import { median } from '../../load/statistics.ts';
import type { LoadResult } from '../../load/tasks.ts';
import { atMost, figure, type Row } from '../../report.ts';
import type { Gateway } from './gateways.ts';

const TITLE = 'new documents';
const WARM_UP = 300;
const PER_ROUND = 200;
/** They take longer. */
const PER_ROUND_OF_PEERS = 50;

/** How long the first answer to a document takes, whose plan is not known: one after the other. */
export async function documentRows(
  gateways: readonly Gateway[],
  { generator, log }: { readonly generator: LoadGenerator; readonly log: (line: string) => void },
): Promise<Row[]> {
  let used = 0;
  const ask = ({ port, path }: Gateway, amount: number): Promise<LoadResult> => {
    const inTurn = Array.from({ length: amount }, (_, index) => ({ body: documentOf(used + index) }));
    used += amount;
    return generator.run({
      kind: 'http',
      port,
      method: 'POST',
      path,
      inTurn,
      names: { prefix: '', first: 0, count: amount },
      connections: 1,
      pace: { amount },
    });
  };
  for (const gateway of gateways) await ask(gateway, WARM_UP);
  log(`federation: measuring, ${TITLE}`);
  const runs = await alternate(
    Object.fromEntries(
      gateways.map((gateway): [string, Contestant] => [
        gateway.name,
        {
          cpuMs: () => gateway.cpuMs(),
          run: () => ask(gateway, gateway.name === 'federation' ? PER_ROUND : PER_ROUND_OF_PEERS),
        },
      ]),
    ),
  );
  return rowsOf(
    runs,
    gateways.map(({ name }) => name),
  );
}

function rowsOf(runs: Runs<string>, names: readonly Gateway['name'][]): Row[] {
  const p99 = (name: string): number => median(runs.of(name).map(({ load }) => load.latencyMs.p99));
  return [
    ...names.map((name) => {
      const row = figure(`${TITLE}: p99 of the answer, ${name}`, p99(name), 'ms');
      return name === 'federation' ? atMost(5, row) : row;
    }),
    ...names.map((name) => figure(`${TITLE}: CPU for each, ${name}`, medianCpu(runs.of(name)), 'µs')),
    atMost(0, figure(`${TITLE}: failed queries`, failuresOf(names.flatMap((name) => runs.of(name))), '')),
  ];
}

/** Pure. Each number has another one, of two services. */
function documentOf(number: number): string {
  const fields = ['id', 'name', 'city'].filter((_, bit) => ((number >> bit) & 1) === 0);
  const query = `query New${number} {
    all${number}: users { ${fields.join(' ')} reviews { id rated${number}: stars body } }
  }`;
  return JSON.stringify({ query });
}
