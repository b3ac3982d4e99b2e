import { spawn } from 'node:child_process';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import type { Environment } from '../config.ts';
import type { KubeconfigCluster, KubeconfigExec } from './kubeconfig.ts';

const PLUGIN_TIMEOUT_MS = 60_000;
const DEFAULT_API_VERSION = 'client.authentication.k8s.io/v1';

/** The status of an ExecCredential (`client.authentication.k8s.io/v1`). */
export interface PluginCredential {
  readonly token?: string;
  readonly clientCertificateData?: string;
  readonly clientKeyData?: string;
  /** RFC 3339; absent: until the server refuses it. */
  readonly expirationTimestamp?: string;
}

const credentialSchema = Type.Object({
  status: Type.Object({
    token: Type.Optional(Type.String()),
    clientCertificateData: Type.Optional(Type.String()),
    clientKeyData: Type.Optional(Type.String()),
    expirationTimestamp: Type.Optional(Type.String()),
  }),
});

export interface PluginOptions {
  readonly cluster: KubeconfigCluster;
  readonly environment: Environment;
}

/**
 * Runs the command of a kubeconfig's `exec` user. What it writes to standard error goes to ours, as with kubectl; what it
 * writes to standard output is secret and appears in no error.
 */
export async function runCredentialPlugin(exec: KubeconfigExec, options: PluginOptions): Promise<PluginCredential> {
  const output = await run(exec, options);
  let credential: unknown;
  try {
    credential = JSON.parse(output);
  } catch {
    throw new Error(`The credential plugin ${exec.command} did not answer with JSON`);
  }
  if (!Value.Check(credentialSchema, credential)) {
    throw new Error(`The credential plugin ${exec.command} did not answer with an ExecCredential`);
  }
  return credential.status;
}

function run(exec: KubeconfigExec, { cluster, environment }: PluginOptions): Promise<string> {
  const given = Object.fromEntries((exec.env ?? []).map(({ name, value }) => [name, value]));
  const child = spawn(exec.command, exec.args ?? [], {
    env: { ...environment, ...given, KUBERNETES_EXEC_INFO: JSON.stringify(execInfo(exec, cluster)) },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: PLUGIN_TIMEOUT_MS,
  });
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.once('error', (error: NodeJS.ErrnoException) => {
      reject(new Error(`The credential plugin ${exec.command} could not be started: ${error.code}`));
    });
    child.once('close', (code, signal) => {
      if (code === 0) resolve(Buffer.concat(chunks).toString('utf8'));
      else reject(new Error(`The credential plugin ${exec.command} ended with ${signal ?? `exit code ${code}`}`));
    });
  });
}

function execInfo(exec: KubeconfigExec, cluster: KubeconfigCluster): object {
  const info = { server: cluster.server, 'certificate-authority-data': cluster['certificate-authority-data'] };
  return {
    apiVersion: exec.apiVersion ?? DEFAULT_API_VERSION,
    kind: 'ExecCredential',
    spec: { interactive: false, ...(exec.provideClusterInfo === true ? { cluster: info } : {}) },
  };
}
