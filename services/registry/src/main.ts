import { systemClock } from '@rollcall/platform/clock.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { stopSignal } from '@rollcall/platform/lifecycle.ts';
import { createLogger } from '@rollcall/platform/log.ts';
import { tracingSettings } from '@rollcall/platform/tracing/settings.ts';
import { registryConfig } from './config.ts';
import { runRegistry } from './wiring/service.ts';

async function main(): Promise<number> {
  const stopRequested = stopSignal();
  const config = registryConfig(process.env);
  const tracing = tracingSettings(process.env, 'rollcall-registry');
  const log = createLogger('registry', config.logLevel);
  return runRegistry({ config, tracing, log, clock: systemClock, stopRequested, environment: process.env });
}

main().then(
  (exitCode) => process.exit(exitCode),
  (error: unknown) => {
    process.stderr.write(`${errorMessage(error)}\n`);
    process.exit(1);
  },
);
