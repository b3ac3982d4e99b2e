import { isUnreachable } from '@rollcall/client/registry-error.ts';
import { Command, CommanderError } from 'commander';
import packageJson from '../package.json' with { type: 'json' };
import { addGlobalOptions, serverOf } from './command.ts';
import { addClientCommands } from './commands/clients.ts';
import { addDeliveryCommands } from './commands/delivery.ts';
import { addGraphCommands } from './commands/graph.ts';
import { addJobCommands } from './commands/jobs.ts';
import { addMessageCommands } from './commands/messages.ts';
import { addPaymentCommands } from './commands/payments.ts';
import { addRegistrationCommands } from './commands/registration.ts';
import { addRunCommand } from './commands/run.ts';
import { addReadCommands } from './commands/services.ts';
import { addUpdateCommands } from './commands/updates.ts';
import { addWatchCommand } from './commands/watch.ts';
import type { CliDeps } from './deps.ts';
import { exitCodeFor, exitCodes, exitCodesHelp } from './exit-codes.ts';
import { printable } from './output/text.ts';

const overview = `
The registry is, in this order: --server, the variable ROLLCALL_SERVER, the one named by .local/endpoints.json in this
directory or above it (npm start writes it), http://127.0.0.1:3001. Where it wants a token: --token,
ROLLCALL_TOKEN, or the file that ROLLCALL_TOKEN_FILE names (in a pod /var/run/secrets/rollcall/token).
Behind the gateway it is at https://<gateway>/api/v1/registry.
Messages, payments and the graph are asked of the gateway: --gateway, ROLLCALL_GATEWAY, .local/endpoints.json,
http://127.0.0.1:3000. Its token is --token or ROLLCALL_TOKEN, or one for ROLLCALL_CLIENT_ID and ROLLCALL_CLIENT_SECRET.

Examples:
  $ rollcall services
  $ rollcall run --name shop --url http://10.0.0.7:8080 -- node shop.js
  $ rollcall watch -o json
  $ rollcall deploy shop 1.4.0 --image registry.example/shop:1.4.0 --wait
  $ rollcall messages --status failed`;

/**
 * Runs one command line.
 *
 * @param args without the names of the interpreter and the script.
 * @returns the exit code. Errors are printed on standard error, never thrown.
 */
export async function runCli(args: readonly string[], processDeps: Omit<CliDeps, 'exitWith'>): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const deps: CliDeps = {
    ...processDeps,
    exitWith: (code) => {
      exitCode = code;
    },
  };
  const program = buildProgram(deps);
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) deps.err(`rollcall: ${explain(error, program, deps)}\n`);
    return exitCodeFor(error);
  }
}

/** Why a command failed. A registry that does not answer is often the wrong one. */
function explain(error: unknown, program: Command, deps: CliDeps): string {
  const message = printable(error instanceof Error ? error.message : String(error));
  return isUnreachable(error) ? `${message} (registry chosen by ${serverOf(program, deps).source})` : message;
}

function buildProgram(deps: CliDeps): Command {
  const program = addGlobalOptions(new Command('rollcall'))
    .description('Registers services with Rollcall, finds them and delivers new versions of them.')
    .version(packageJson.version)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ writeOut: deps.out, writeErr: deps.err })
    .exitOverride()
    .addHelpText('after', overview)
    .addHelpText('afterAll', exitCodesHelp);
  addReadCommands(program, deps);
  addWatchCommand(program, deps);
  addRegistrationCommands(program, deps);
  addRunCommand(program, deps);
  addDeliveryCommands(program, deps);
  addJobCommands(program, deps);
  addUpdateCommands(program, deps);
  addClientCommands(program, deps);
  addMessageCommands(program, deps);
  addPaymentCommands(program, deps);
  addGraphCommands(program, deps);
  return program;
}
