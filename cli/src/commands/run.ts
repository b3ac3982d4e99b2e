import { type Registration, register } from '@rollcall/client/registration.ts';
import { RegistryError } from '@rollcall/client/registry-error.ts';
import type { Capability, InstanceFacts } from '@rollcall/client/registry-types.ts';
import { type Command, Option } from 'commander';
import { addCheckOptions, type CheckChoice, checkOf } from '../check-options.ts';
import { exitCodeOfSignal, runChild } from '../child.ts';
import { addFactOptions, capabilitiesOption, connectionOf, factsOf, instanceOption, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { printable } from '../output/text.ts';

interface RunOptions extends InstanceFacts, CheckChoice {
  readonly name: string;
  readonly url: string;
  readonly capability: readonly Capability[];
  readonly instanceId?: string;
}

const notes = `
Without a program it registers what runs elsewhere, such as in another container of the pod, until it is stopped
by SIGTERM or SIGINT; the exit code is then 0.

The program runs with our standard input and output and gets the signals that we get. A registry that does not
answer is no reason not to start it: registering is then tried again in the background. A registration that the
registry refuses is one.

The exit code is the program's own; 128+n where signal n ended it; 127 where it was not found, 126 where it cannot be
executed; and one of those below where it was not to be started.`;

/** `rollcall run`. */
export function addRunCommand(program: Command, deps: CliDeps): void {
  withExamples(
    addCheckOptions(
      addFactOptions(
        program
          .command('run')
          .description('run a program, registered and with heartbeats as long as it lives')
          .usage('--name <name> --url <url> [options] [-- <command> [args...]]')
          .requiredOption('--name <name>', 'name of the service')
          .requiredOption('--url <url>', 'where it can be reached')
          .addOption(capabilitiesOption())
          .addOption(instanceOption("the pod's name, else the host's and a random part")),
      ),
    )
      // Of releases before instances: manifests may still have it.
      .addOption(new Option('--shared').hideHelp())
      .argument('[command]', 'program to run')
      .argument('[args...]', 'its arguments; put -- before the command'),
    [
      'rollcall run --name shop --url http://10.0.0.7:8080 -- node shop.js --port 8080',
      'rollcall run --name shop --url http://10.0.0.7:8080 --capability rest,grpc -- ./shop',
      'rollcall run --name shop --url http://10.0.0.7:8080 --instance-id shop-a -- ./shop',
      'rollcall run --name shop --url http://10.0.0.7:8080 --check-http /health -- ./shop',
      'rollcall run --name shop --url http://10.0.0.7:8080 --zone eu-1a --weight 50 --metadata team=payments -- ./shop',
    ],
  )
    .addHelpText('after', notes)
    .action(async function (this: Command, command: string | undefined, args: string[]) {
      const { name, url, capability: capabilities, instanceId, ...said }: RunOptions = this.opts();
      const connection = connectionOf(this, deps);
      const report = (message: string) => deps.err(`rollcall: ${printable(message)}\n`);
      const facts = factsOf(said, deps);
      const registration = register({
        ...connection,
        name,
        url,
        capabilities,
        instanceId,
        facts,
        check: checkOf(said),
      });
      reportEvents(registration, report);
      try {
        const stopped = stopRequested();
        const early = await Promise.race([firstOutcome(registration), stopped]);
        if (command === undefined) await stopped;
        else if (early !== undefined) deps.exitWith(exitCodeOfSignal(early));
        else deps.exitWith(await runChild({ command, args, isSharedTerminal: deps.hasTerminal, report }));
      } finally {
        await registration[Symbol.asyncDispose]();
      }
    });
}

/**
 * From now on the signals end nothing by themselves: what is being registered has to be taken back.
 */
function stopRequested(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, resolve);
  });
}

/**
 * Resolves when the registry accepted the registration, or could not be asked.
 *
 * @throws RegistryError where it refused, even if it may change its mind: a wrong token should not
 * go unnoticed.
 */
function firstOutcome(registration: Registration): Promise<void> {
  return new Promise((resolve, reject) => {
    registration.on('registered', () => resolve());
    registration.on('error', ({ error }) => {
      if (isRefusal(error)) reject(error);
      else resolve();
    });
  });
}

function isRefusal(error: unknown): boolean {
  return !(error instanceof RegistryError) || (error.status !== undefined && error.status < 500);
}

/** Prints what a person should know, and of an outage only its beginning and its end. */
function reportEvents(registration: Registration, report: (message: string) => void): void {
  let isFailing = false;
  /** Whether the registry has accepted the registration, or could not be asked. */
  let isDecided = false;
  registration.on('registered', ({ service, again }) => {
    isDecided = true;
    report(`'${service.service_name}' is registered${again ? ' again' : ''} as ${service.service_id}`);
    isFailing = false;
  });
  registration.on('heartbeat', () => {
    if (isFailing) report('heartbeats arrive again');
    isFailing = false;
  });
  registration.on('lost', ({ reason }) => {
    if (reason === 'expired') report('the registration had expired; registering again');
  });
  registration.on('error', ({ error }) => {
    const state = registration.state();
    // It ends the command, which says so.
    if (!isDecided && isRefusal(error)) return;
    isDecided = true;
    const message = error instanceof Error ? error.message : String(error);
    if (state === 'stopped') report(`not unregistered: ${message}; the registration expires by itself`);
    else if (state !== 'refused' && !isFailing) report(`${message}; trying again`);
    isFailing = true;
  });
}
