import { existsSync } from 'node:fs';
import { stopSignal } from '@rollcall/platform/process/lifecycle.ts';
import { run } from './run.ts';

const TERMINATION_LOG = '/dev/termination-log';

process.exit(
  await run(process.argv.slice(2), {
    write: (text) => process.stderr.write(text),
    stopRequested: stopSignal(),
    terminationLog: existsSync(TERMINATION_LOG) ? TERMINATION_LOG : undefined,
  }),
);
