// Started by control-plane.test.ts, which kills it: starts a control plane, prints its process ids,
// and waits.
import { startControlPlane } from '@rollcall/local/control-plane.ts';

const [directory = '', binaries = '{}'] = process.argv.slice(2);
const controlPlane = await startControlPlane({
  directory,
  binaries: JSON.parse(binaries),
  workloads: false,
  controllerManager: true,
  log: () => undefined,
});
console.log(JSON.stringify(controlPlane.processes));
// Keeps the process alive until it is killed.
setInterval(() => undefined, 60_000);
