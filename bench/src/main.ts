// `npm run bench [-- NAME ...]`: measures Rollcall on a real control plane and prints a table.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, loadavg, release, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { defaultCacheDirectory, findKubernetesBinaries } from '@rollcall/local/kubernetes-binaries.ts';
import { REPOSITORY } from '@rollcall/local/services.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { type Arguments, parseArguments } from './arguments.ts';
import type { Bench } from './bench.ts';
import { communication } from './benches/communication/communication.ts';
import { delivery } from './benches/delivery.ts';
import { expiry } from './benches/expiry.ts';
import { federation } from './benches/federation/federation.ts';
import { gatewaySoak } from './benches/gateway-soak.ts';
import { grpc } from './benches/grpc.ts';
import { heartbeats } from './benches/heartbeats.ts';
import { lists } from './benches/lists.ts';
import { lookups } from './benches/lookups.ts';
import { memory } from './benches/memory.ts';
import { payment } from './benches/payment/payment.ts';
import { proxy } from './benches/proxy.ts';
import { soak } from './benches/soak.ts';
import { ttl } from './benches/ttl.ts';
import { websocket } from './benches/websocket.ts';
import { renderTable, type Section } from './report.ts';
import { startStage } from './stage/stage.ts';

const BENCHES: readonly Bench[] = [
  lookups,
  lists,
  heartbeats,
  ttl,
  expiry,
  memory,
  proxy,
  grpc,
  websocket,
  communication,
  payment,
  federation,
  delivery,
  soak,
  gatewaySoak,
];

const API = ['etcd', 'kube-apiserver', 'kubectl'] as const;
const WORKLOADS = ['kube-controller-manager', 'kube-scheduler', 'kwok'] as const;

const HELP = `npm run bench [-- NAME ...] [--services N] [--per-name N] [--minutes N]

Without a name, all benches run but those marked *. An error ends with exit code 1; a missed limit does not.

${BENCHES.map(({ name, measures, onlyWhenNamed }) => `  ${(name + (onlyWhenNamed === true ? '*' : '')).padEnd(14)}${measures}`).join('\n')}

  --services N  registrations while measuring (10000; the limits are meant for that)
  --per-name N  how many of these are instances of one service (1); not in the soaks
  --minutes N   length of the soaks (10), and of how long communication and payment are watched (1)
`;

const log = (line: string): void => console.error(line);

process.exitCode = await main();

async function main(): Promise<number> {
  try {
    const known = BENCHES.map(({ name }) => name);
    const args = parseArguments(process.argv.slice(2), known);
    if (args.help) {
      console.log(HELP);
      return 0;
    }
    const sections = await runBenches(chosen(args), args, stopOnSignals());
    await keep(sections);
    console.log(renderTable(sections));
    return 0;
  } catch (err) {
    log(errorMessage(err));
    return 1;
  }
}

function chosen({ names }: Arguments): readonly Bench[] {
  if (names.length === 0) return BENCHES.filter(({ onlyWhenNamed }) => onlyWhenNamed !== true);
  return BENCHES.filter(({ name }) => names.includes(name));
}

async function runBenches(benches: readonly Bench[], args: Arguments, signal: AbortSignal): Promise<Section[]> {
  const sections: Section[] = [];
  for (const workloads of [false, true]) {
    const group = benches.filter((bench) => (bench.workloads ?? false) === workloads);
    if (group.length > 0) sections.push(...(await runGroup(group, { args, workloads, signal })));
  }
  return sections;
}

/** Runs benches one after the other on a stage of their own. */
async function runGroup(
  benches: readonly Bench[],
  { args, workloads, signal }: { readonly args: Arguments; readonly workloads: boolean; readonly signal: AbortSignal },
): Promise<Section[]> {
  const binaries = await findKubernetesBinaries([...API, ...(workloads ? WORKLOADS : [])], {
    assetsDirectory: process.env['KUBEBUILDER_ASSETS'],
    cacheDirectory: defaultCacheDirectory(process.env),
    log,
    signal,
  });
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), `rollcall-bench-${process.pid}-`));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const env = { PATH: process.env['PATH'] };
  const stage = await startStage(stack, { directory, binaries, workloads, env, log, signal });
  const sections: Section[] = [];
  for (const bench of benches) {
    log(`${bench.name}: ${bench.measures}`);
    const running = bench.run({ stage, services: args.services, perName: args.perName, minutes: args.minutes, log });
    const rows = await Promise.race([running, stage.failed, rejectionOf(signal)]);
    sections.push({ bench: bench.name, rows, loadAverage: loadavg()[0] ?? Number.NaN });
  }
  return sections;
}

/**
 * Aborts at the first signal, so that everything is stopped in order; the second ends the process
 * at once.
 */
function stopOnSignals(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(1);
      controller.abort(new Error(`Stopped by ${name}`));
    });
  }
  return controller.signal;
}

function rejectionOf(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** For programs, with what the figures were measured on. */
async function keep(sections: readonly Section[]): Promise<void> {
  const processors = cpus();
  const machine = {
    processors: `${processors.length} x ${processors[0]?.model ?? 'unknown'}`,
    memoryMiB: Math.round(totalmem() / 2 ** 20),
    system: `${process.platform} ${release()}`,
    node: process.version,
  };
  const directory = join(REPOSITORY, '.local');
  await mkdir(directory, { recursive: true });
  const content = { measuredAt: new Date().toISOString(), machine, sections };
  await writeFile(join(directory, 'bench.json'), `${JSON.stringify(content, undefined, 2)}\n`);
}
