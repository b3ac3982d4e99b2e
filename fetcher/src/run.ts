import { writeFile } from 'node:fs/promises';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { isPublicAddress } from '@rollcall/platform/outbound/address-scope.ts';
import { parseFetchArguments } from './arguments.ts';
import { readAuthorization } from './credentials.ts';
import { exitCodes, FetchError } from './errors.ts';
import { fetchArtifact } from './fetch-artifact.ts';

const LIMITS = {
  attempts: 6,
  backoff: { baseMs: 500, maxMs: 15_000 },
  idleTimeoutMs: 30_000,
  timeoutMs: 600_000,
};
/** Kubernetes keeps no more. */
const TERMINATION_MESSAGE_MAX_BYTES = 4096;

export interface RunDeps {
  /** For people. */
  readonly write: (text: string) => void;
  /** Resolves with the signal that the process is to end for. */
  readonly stopRequested: Promise<string>;
  /** Where Kubernetes reads the last words; undefined: nowhere. */
  readonly terminationLog: string | undefined;
}

/** Runs the command. @returns its exit code. */
export async function run(args: readonly string[], deps: RunDeps): Promise<number> {
  const { line, exitCode } = await outcomeOf(args, deps);
  deps.write(`rollcall fetch: ${line}\n`);
  if (deps.terminationLog !== undefined) await leaveMessage(deps.terminationLog, line);
  return exitCode;
}

async function outcomeOf(args: readonly string[], deps: RunDeps): Promise<{ line: string; exitCode: number }> {
  try {
    return { line: await fetchByArguments(args, deps), exitCode: 0 };
  } catch (error) {
    const exitCode = error instanceof FetchError ? exitCodes[error.code] : exitCodes.FAILED;
    return { line: errorMessage(error).replaceAll(/\s+/g, ' '), exitCode };
  }
}

async function fetchByArguments(args: readonly string[], { write, stopRequested }: RunDeps): Promise<string> {
  const { url, allowPrivate, credentialsDirectory, ...settings } = parseFetchArguments(args);
  const authorization = credentialsDirectory === undefined ? undefined : await readAuthorization(credentialsDirectory);
  const stop = new AbortController();
  void stopRequested.then((signal) => stop.abort(new FetchError('FAILED', `Stopped by ${signal}`)));
  const { bytes } = await fetchArtifact({
    ...settings,
    ...LIMITS,
    source: { url, authorization },
    mayConnect: allowPrivate ? () => true : isPublicAddress,
    signal: stop.signal,
    report: (line) => write(`rollcall fetch: ${line}\n`),
  });
  return bytes === undefined ? `${settings.output} is there already` : `Fetched ${settings.output}, ${bytes} bytes`;
}

/** The pod's status shows it; where it cannot be written, the log has the same line. */
async function leaveMessage(path: string, line: string): Promise<void> {
  const message = Buffer.from(line).subarray(0, TERMINATION_MESSAGE_MAX_BYTES);
  await writeFile(path, message).catch(() => undefined);
}
