import { systemClock } from '@rollcall/platform/clock.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { stopSignal } from '@rollcall/platform/lifecycle.ts';
import { createLogger } from '@rollcall/platform/log.ts';
import { operatorConfig } from './config.ts';
import { runOperator } from './operator.ts';

async function main(): Promise<number> {
  const stopRequested = stopSignal();
  const config = operatorConfig(process.env);
  const log = createLogger('operator', config.logLevel);
  return runOperator({ config, log, clock: systemClock, stopRequested, environment: process.env });
}

main().then(
  (exitCode) => process.exit(exitCode),
  (error: unknown) => {
    process.stderr.write(`${errorMessage(error)}\n`);
    process.exit(1);
  },
);
