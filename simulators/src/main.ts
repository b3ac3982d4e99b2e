// `node simulators/src/main.ts [--port N]`: every simulator on 127.0.0.1, one port after another, until it is told to
// stop. Prints where each one listens.
import { parseArgs } from 'node:util';
import { stopSignal } from '@rollcall/platform/process/lifecycle.ts';
import { startAll } from './all.ts';

const FIRST_PORT = 4100;

const { values } = parseArgs({ options: { port: { type: 'string', default: String(FIRST_PORT) } } });
const stopRequested = stopSignal();
const simulators = await startAll(Number(values.port));
for (const { name, url } of simulators) process.stdout.write(`${name} ${url}\n`);
await stopRequested;
await Promise.all(simulators.map((simulator) => simulator.stop()));
process.exit(0);
