import { mkdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { errorMessage } from '@rollcall/platform/errors.ts';
import type { GoUse } from './go-build.ts';
import { type FindBinariesOptions, findKubernetesBinaries } from './kubernetes-binaries.ts';
import { freePorts } from './ports.ts';
import { type Restartable, startRestartable } from './restartable.ts';

/** An executable of Mailpit, or why there is none, in sentences. */
export type FoundMailpit = { readonly file: string } | { readonly problem: string };

export interface MailpitOptions {
  /** For its log and what it receives. The caller removes it. */
  readonly directory: string;
  /** The executable. */
  readonly file: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A running Mailpit on 127.0.0.1: a mail server that accepts every mail, delivers none, and shows
 * what it has by HTTP. It is started again with the same ports, and still has what it had.
 */
export interface Mailpit extends Restartable {
  /** Base URL of its API, `/api/v1` (https://mailpit.axllent.org/docs/api-v1/). */
  readonly url: string;
  /** Without TLS and without authentication. */
  readonly smtpPort: number;
}

const USE: GoUse = {
  purpose: 'The mail server Mailpit is built from source',
  instead: 'put mailpit beside the Kubernetes binaries of KUBEBUILDER_ASSETS',
};
const PROBE_TIMEOUT_MS = 2_000;

/**
 * Finds Mailpit as {@link findKubernetesBinaries} does: in KUBEBUILDER_ASSETS, else in the cache,
 * else built there, which takes a minute or two, once. Whatever goes wrong is a problem and no
 * failure: everything but mail works without it.
 *
 * @throws the signal's reason when it was aborted.
 */
export async function findMailpit(options: FindBinariesOptions): Promise<FoundMailpit> {
  try {
    const { mailpit } = await findKubernetesBinaries(['mailpit'], { ...options, use: USE });
    return { file: mailpit };
  } catch (err) {
    options.signal?.throwIfAborted();
    return { problem: errorMessage(err) };
  }
}

/**
 * Starts a Mailpit on free ports. By `PUT /api/v1/chaos` it can be told to refuse mails.
 *
 * @throws with the end of its log when it does not start.
 */
export async function startMailpit({ directory, file, signal }: MailpitOptions): Promise<Mailpit> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const [httpPort = 0, smtpPort = 0] = await freePorts(2);
  const url = `http://127.0.0.1:${httpPort}`;
  const server = await startRestartable({
    name: 'mailpit',
    command: file,
    args: [
      `--listen=127.0.0.1:${httpPort}`,
      `--smtp=127.0.0.1:${smtpPort}`,
      `--database=${join(directory, 'mailpit.db')}`,
      // By itself it deletes all but the newest 500.
      '--max=0',
      // It asks neither name servers about callers, nor GitHub about newer versions.
      '--smtp-disable-rdns',
      '--disable-version-check',
      '--enable-chaos',
      '--quiet',
    ],
    logFile: join(directory, 'mailpit.log'),
    isReady: async () => (await answersReady(url)) && (await greets(smtpPort)),
    stopSignal: 'SIGTERM',
    signal,
  });
  return Object.assign(server, { url, smtpPort });
}

async function answersReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

/** Its two servers start one after the other. */
async function greets(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1', timeout: PROBE_TIMEOUT_MS });
  socket.on('timeout', () => socket.destroy());
  socket.write('QUIT\r\n');
  const answer = await text(socket).catch(() => '');
  return answer.startsWith('220 ');
}
