import { isAbsolute } from 'node:path';
import { parseArgs } from 'node:util';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { httpUrlFault } from '@rollcall/platform/service-address.ts';
import { type Checksum, parseChecksum } from './checksum.ts';
import { FetchError } from './errors.ts';

/** What to fetch, and where to. */
export interface FetchArguments {
  /** Https; its query is never shown. */
  readonly url: URL;
  readonly checksum: Checksum;
  /** Absolute path; its directory must exist. */
  readonly output: string;
  /** A larger file is refused. */
  readonly maxBytes: number;
  /** Whether private, loopback and link-local addresses are connected to, too. */
  readonly allowPrivate: boolean;
  /** A mounted Secret with a file token, or files username and password. */
  readonly credentialsDirectory: string | undefined;
}

const options = {
  url: { type: 'string', default: '' },
  checksum: { type: 'string', default: '' },
  output: { type: 'string', default: '' },
  'max-bytes': { type: 'string', default: '' },
  'allow-private': { type: 'boolean', default: false },
  'credentials-dir': { type: 'string' },
} as const;

/**
 * Reads `fetch --url ...`, the command of the init container. The message names every fault; values
 * are not repeated, for they may hold credentials.
 *
 * @throws FetchError USAGE.
 */
export function parseFetchArguments(args: readonly string[]): FetchArguments {
  const { values, positionals } = parse(args);
  const { url, output, 'credentials-dir': credentialsDirectory } = values;
  const checksum = parseChecksum(values.checksum);
  const maxBytes = /^\d+$/.test(values['max-bytes']) ? Number(values['max-bytes']) : 0;
  const faults: string[] = [];
  if (positionals.join() !== 'fetch') faults.push('the command must be "fetch"');
  const urlFault = httpUrlFault(url) ?? (new URL(url).protocol === 'https:' ? undefined : 'must be an https URL');
  if (urlFault !== undefined) faults.push(`--url ${urlFault}`);
  if (checksum === undefined) faults.push('--checksum must be sha256:<64 hex digits> or sha512:<128 hex digits>');
  if (!isAbsolute(output) || output.endsWith('/') || output.includes('\0')) {
    faults.push('--output must be the absolute path of a file');
  }
  if (maxBytes === 0 || !Number.isSafeInteger(maxBytes)) faults.push('--max-bytes must be a whole number from 1');
  if (credentialsDirectory === '') faults.push('--credentials-dir must not be empty');
  if (checksum === undefined || faults.length > 0) throw wrongUsage(faults.join('; '));
  return {
    url: new URL(url),
    checksum,
    output,
    maxBytes,
    allowPrivate: values['allow-private'],
    credentialsDirectory,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw wrongUsage(errorMessage(error));
  }
}

function wrongUsage(why: string): FetchError {
  return new FetchError('USAGE', `Wrong usage: ${why}`);
}
