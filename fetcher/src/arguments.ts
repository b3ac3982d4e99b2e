import { isAbsolute } from 'node:path';
import { parseArgs } from 'node:util';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { httpUrlFault } from '@rollcall/platform/service-address.ts';
import { type Checksum, parseChecksum } from './checksum.ts';
import { FetchError } from './errors.ts';

export const usage = `Usage: rollcall fetch --url URL --checksum ALGORITHM:HEX --output FILE --max-bytes N [options]

Fetches a file over https, checks it, and puts it in its place whole or not at all. Nothing is done when it is there already.

  --url URL               https; the query is never shown
  --checksum SUM          sha256:<64 hex digits> or sha512:<128 hex digits>
  --output FILE           absolute path; its directory must exist
  --max-bytes N           a larger file is refused
  --mode OCTAL            permissions of the file (default 0755)
  --allow-private         connect to private, loopback and link-local addresses too
  --credentials-dir DIR   a mounted Secret with a file token, or files username and password
  --attempts N            how often the server is asked (default 6)
  --timeout-seconds N     for everything together (default 600)
  --termination-log FILE  where the last line goes (default /dev/termination-log, if it is there)

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 wrong checksum, 4 address not allowed, 5 too large.
Further certificate authorities: NODE_EXTRA_CA_CERTS. Proxies of the environment are not used.
`;

export interface FetchArguments {
  readonly url: URL;
  readonly checksum: Checksum;
  readonly output: string;
  readonly maxBytes: number;
  readonly mode: number;
  readonly allowPrivate: boolean;
  readonly credentialsDirectory: string | undefined;
  readonly attempts: number;
  readonly timeoutMs: number;
}

const options = {
  url: { type: 'string' },
  checksum: { type: 'string' },
  output: { type: 'string' },
  'max-bytes': { type: 'string' },
  mode: { type: 'string', default: '0755' },
  'allow-private': { type: 'boolean', default: false },
  'credentials-dir': { type: 'string' },
  attempts: { type: 'string', default: '6' },
  'timeout-seconds': { type: 'string', default: '600' },
  'termination-log': { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

/** What every call may carry, however wrong the rest of it is. */
export function parseCommonArguments(args: readonly string[]): { help: boolean; terminationLog: string | undefined } {
  const { values } = parseArgs({ args: [...args], options, strict: false });
  const terminationLog = values['termination-log'];
  return {
    help: values.help === true,
    terminationLog: typeof terminationLog === 'string' ? terminationLog : undefined,
  };
}

/**
 * Reads `fetch --url ...`. The message names every fault; values are not repeated, for they may
 * hold credentials.
 *
 * @throws FetchError USAGE.
 */
export function parseFetchArguments(args: readonly string[]): FetchArguments {
  const { values, positionals } = parse(args);
  const faults: string[] = [];
  const read = <Value>(name: string, value: string | undefined, parse: (text: string) => Value | string) => {
    const parsed = value === undefined || value === '' ? 'is required' : parse(value);
    if (typeof parsed !== 'string') return parsed;
    faults.push(`--${name} ${parsed}`);
    return undefined;
  };
  if (positionals.length !== 1 || positionals[0] !== 'fetch') faults.push('the command must be "fetch"');
  const url = read('url', values.url, parseUrl);
  const checksum = read(
    'checksum',
    values.checksum,
    (text) => parseChecksum(text) ?? 'must be sha256:<64 hex digits> or sha512:<128 hex digits>',
  );
  const output = read('output', values.output, parseOutput);
  const maxBytes = read('max-bytes', values['max-bytes'], integer(1, Number.MAX_SAFE_INTEGER));
  const mode = read('mode', values.mode, parseMode);
  const attempts = read('attempts', values.attempts, integer(1, 100));
  const timeoutSeconds = read('timeout-seconds', values['timeout-seconds'], integer(1, 86_400));
  if (values['credentials-dir'] === '') faults.push('--credentials-dir must not be empty');
  if (
    url === undefined ||
    checksum === undefined ||
    output === undefined ||
    maxBytes === undefined ||
    mode === undefined ||
    attempts === undefined ||
    timeoutSeconds === undefined ||
    faults.length > 0
  ) {
    throw new FetchError('USAGE', `Wrong usage: ${faults.join('; ')}`);
  }
  return {
    url,
    checksum,
    output: output.path,
    maxBytes,
    mode,
    allowPrivate: values['allow-private'],
    credentialsDirectory: values['credentials-dir'],
    attempts,
    timeoutMs: timeoutSeconds * 1000,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new FetchError('USAGE', `Wrong usage: ${errorMessage(error)}`);
  }
}

function parseUrl(text: string): URL | string {
  const fault = httpUrlFault(text);
  if (fault !== undefined) return fault;
  const url = new URL(text);
  return url.protocol === 'https:' ? url : 'must be an https URL';
}

function parseOutput(text: string): { readonly path: string } | string {
  return isAbsolute(text) && !text.endsWith('/') && !text.includes('\0')
    ? { path: text }
    : 'must be the absolute path of a file';
}

function parseMode(text: string): number | string {
  return /^0?[0-7]{3}$/.test(text) ? Number.parseInt(text, 8) : 'must be three octal digits, such as 0755';
}

function integer(minimum: number, maximum: number): (text: string) => number | string {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    return value >= minimum && value <= maximum ? value : `must be a whole number from ${minimum} to ${maximum}`;
  };
}
