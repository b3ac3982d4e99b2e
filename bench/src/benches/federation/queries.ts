import { isDeepStrictEqual } from 'node:util';
import type { LoadGenerator } from '../../load/load-generator.ts';
import {
  alternate,
  type Contestant,
  failuresOf,
  medianCpu,
  medianRate,
  type Run,
  type Runs,
} from '../../load/rounds.ts';
import { median } from '../../load/statistics.ts';
import type { LoadResult } from '../../load/tasks.ts';
import { atLeast, atMost, figure, type Row } from '../../report.ts';
import type { Gateway, PeerName } from './gateways.ts';

const CONNECTIONS = 16;

/** A query that all gateways answer. */
interface Compared {
  /** In the names of rows. */
  readonly title: string;
  readonly query: string;
  /** Each, before it is measured. */
  readonly warmUp: number;
  /** Of federation; the peers get a share of that, as they take longer. */
  readonly perRound: number;
  /** Microseconds of CPU time for each, of federation. */
  readonly mostCpu: number;
  /** Requests per CPU second, as a multiple of those of a peer; absent: only shown. */
  readonly leastRatio: { readonly [Peer in PeerName]?: number };
}

const PEERS_SHARE = 1 / 4;

const QUERIES: readonly Compared[] = [
  {
    title: '2 services',
    query: '{ users { id name reviews { id stars body } } }',
    warmUp: 3000,
    perRound: 4000,
    mostCpu: 250,
    leastRatio: { apollo: 5, mercurius: 1.5 },
  },
  {
    title: '5 services, 100 entities',
    query: '{ products { id name price inStock days stars } }',
    warmUp: 400,
    perRound: 800,
    mostCpu: 500,
    leastRatio: {},
  },
];

interface Loaded {
  readonly generator: LoadGenerator;
  readonly log: (line: string) => void;
}

/** CPU time for queries that are known, of federation and its peers in turns. */
export async function queryRows(gateways: readonly Gateway[], { generator, log }: Loaded): Promise<Row[]> {
  const rows: Row[] = [];
  for (const compared of QUERIES) {
    const { title, query, warmUp } = compared;
    await requireEqualAnswers(gateways, query);
    for (const gateway of gateways) await ask(generator, gateway, { query, amount: warmUp });
    log(`federation: measuring, ${title}`);
    const runs = await alternate(
      Object.fromEntries(
        gateways.map((gateway): [string, Contestant] => [
          gateway.name,
          {
            cpuMs: () => gateway.cpuMs(),
            run: () => ask(generator, gateway, { query, amount: amountFor(gateway, compared) }),
          },
        ]),
      ),
    );
    log(`federation: busy, ${title}: ${runs.describeShares()}`);
    rows.push(...rowsOf(runs, gateways, compared));
  }
  return rows;
}

function amountFor({ name }: Gateway, { perRound }: Compared): number {
  return name === 'federation' ? perRound : perRound * PEERS_SHARE;
}

function rowsOf(runs: Runs<string>, gateways: readonly Gateway[], { title, mostCpu, leastRatio }: Compared): Row[] {
  const own = runs.of('federation');
  const peers = gateways.flatMap(({ name }) => (name === 'federation' ? [] : [name]));
  return [
    atMost(mostCpu, figure(`${title}: CPU per query`, medianCpu(own), 'µs')),
    ...peers.map((name) => figure(`${title}: CPU per query, ${name}`, medianCpu(runs.of(name)), 'µs')),
    ...peers.map((name) => {
      const row = figure(`${title}: queries per CPU second / ${name}`, cpuRatio(own, runs.of(name)), '');
      const least = leastRatio[name];
      return least === undefined ? row : atLeast(least, row);
    }),
    figure(`${title}: federation`, medianRate(own), 'requests/s'),
    ...peers.map((name) => figure(`${title}: ${name}`, medianRate(runs.of(name)), 'requests/s')),
    atMost(
      0,
      figure(`${title}: failed queries`, failuresOf(['federation', ...peers].flatMap((name) => runs.of(name))), ''),
    ),
  ];
}

/** Of the same round, because these were measured at nearly the same time. */
function cpuRatio(own: readonly Run[], peer: readonly Run[]): number {
  return median(
    own.map((run, round) => {
      const beside = peer[round];
      return beside === undefined ? Number.NaN : perQuery(beside) / perQuery(run);
    }),
  );
}

interface Asked {
  readonly query: string;
  readonly amount: number;
}

function ask(generator: LoadGenerator, { port, path }: Gateway, { query, amount }: Asked): Promise<LoadResult> {
  return generator.run({
    kind: 'http',
    port,
    method: 'POST',
    path,
    body: JSON.stringify({ query }),
    names: { prefix: '', first: 0, count: 1 },
    connections: CONNECTIONS,
    pace: { amount },
  });
}

function perQuery({ cpuMs, load }: Run): number {
  return cpuMs / load.requests;
}

/** What answers something else does other work. */
async function requireEqualAnswers(gateways: readonly Gateway[], query: string): Promise<void> {
  const answers = await Promise.all(
    gateways.map(async ({ port, path }) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query }),
      });
      const answer: unknown = await response.json();
      return answer;
    }),
  );
  const [first] = answers;
  if (!answers.every((answer) => isDeepStrictEqual(answer, first)))
    throw new Error(`The gateways answer differently: ${JSON.stringify(answers).slice(0, 2000)}`);
}
