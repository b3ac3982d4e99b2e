import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import type { Command } from 'commander';
import { connectionOf, printResult, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { exitCodes } from '../exit-codes.ts';
import { formatHealth } from '../output/health.ts';

/** `rollcall health`. */
export function addHealthCommand(program: Command, deps: CliDeps): void {
  withExamples(program.command('health').description("show the registry's own health; fails unless it is healthy"), [
    'rollcall health',
    'until rollcall health; do sleep 1; done',
  ]).action(async function (this: Command) {
    const body = await createRegistryClient(connectionOf(this, deps)).health();
    printResult(this, deps, { body, asText: (report) => formatHealth(report, deps.now()) });
    if (body.status !== 'healthy') deps.exitWith(exitCodes.failed);
  });
}
