import type { HealthCheck } from '@rollcall/client/registry-types.ts';
import { type Command, Option } from 'commander';

/** What {@link addCheckOptions} were given. */
export interface CheckChoice {
  readonly checkHttp?: string;
  readonly checkTcp?: boolean;
  readonly checkGrpc?: string | true;
}

/** How Rollcall asks the service whether it is well: `--check-http`, `--check-tcp` or `--check-grpc`. */
export function addCheckOptions(command: Command): Command {
  const options = [
    new Option('--check-http <path>', 'have a path below the URL asked for its health, such as /health'),
    new Option('--check-tcp', 'have it tried whether it accepts connections'),
    new Option('--check-grpc [service]', 'have its health asked for by grpc.health.v1; of a service, or as a whole'),
  ];
  const names = options.map((option) => option.attributeName());
  for (const [at, option] of options.entries()) command.addOption(option.conflicts(names.toSpliced(at, 1)));
  return command;
}

export function checkOf({ checkHttp, checkTcp, checkGrpc }: CheckChoice): HealthCheck | undefined {
  if (checkHttp !== undefined) return { type: 'http', path: checkHttp };
  if (checkTcp === true) return { type: 'tcp' };
  if (checkGrpc === undefined) return undefined;
  return { type: 'grpc', ...(checkGrpc === true ? {} : { service: checkGrpc }) };
}
