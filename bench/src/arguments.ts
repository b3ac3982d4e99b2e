import { parseArgs } from 'node:util';

/** What the command line asks for. */
export interface Arguments {
  readonly help: boolean;
  /** Names of benches; empty: all that do not have to be named. */
  readonly names: readonly string[];
  readonly services: number;
  readonly perName: number;
  /** Undefined: as long as each bench usually takes. */
  readonly minutes: number | undefined;
}

/**
 * @throws with a sentence for the user when an option is unknown or no positive number, or a bench
 * does not exist.
 */
export function parseArguments(args: readonly string[], known: readonly string[]): Arguments {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h', default: false },
      services: { type: 'string', default: '10000' },
      'per-name': { type: 'string', default: '1' },
      minutes: { type: 'string' },
    },
  });
  const unknown = positionals.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`No such bench: ${unknown.join(', ')}. There are: ${known.join(', ')}`);
  return {
    help: values.help,
    names: positionals,
    services: whole('--services', values.services),
    perName: whole('--per-name', values['per-name']),
    minutes: values.minutes === undefined ? undefined : positive('--minutes', values.minutes),
  };
}

function whole(option: string, text: string): number {
  const value = positive(option, text);
  if (!Number.isInteger(value)) throw new Error(`${option} needs a whole number`);
  return value;
}

function positive(option: string, text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) throw new Error(`${option} takes a number above 0, not '${text}'`);
  return value;
}
