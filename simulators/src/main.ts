// `node simulators/src/main.ts [--port N] [--settings FILE]`: every simulator on 127.0.0.1, one port after another, until
// it is told to stop. Prints where each one listens.
import { parseArgs } from 'node:util';
import { stopSignal } from '@rollcall/platform/process/lifecycle.ts';
import { startAll } from './all.ts';
import { readSettings } from './settings.ts';

const FIRST_PORT = 4100;

const { values } = parseArgs({
  options: { port: { type: 'string', default: String(FIRST_PORT) }, settings: { type: 'string' } },
});
const stopRequested = stopSignal();
const settings = values.settings === undefined ? {} : await readSettings(values.settings);
const simulators = await startAll(Number(values.port), settings);
for (const { name, url } of simulators) process.stdout.write(`${name} ${url}\n`);
await stopRequested;
await Promise.all(simulators.map((simulator) => simulator.stop()));
process.exit(0);
