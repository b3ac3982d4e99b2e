import { readFile } from 'node:fs/promises';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { type Static, type TSchema, Type } from 'typebox';
import { Value } from 'typebox/value';
import { parse } from 'yaml';
import type { Environment } from '../config.ts';

const SERVICE_ACCOUNT_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';

const text = Type.Optional(Type.String());

const clusterSchema = Type.Object({
  server: Type.String({ minLength: 1 }),
  'certificate-authority': text,
  'certificate-authority-data': text,
  'insecure-skip-tls-verify': Type.Optional(Type.Boolean()),
  'tls-server-name': text,
  'proxy-url': text,
});

const execSchema = Type.Object({
  apiVersion: text,
  command: Type.String({ minLength: 1 }),
  args: Type.Optional(Type.Array(Type.String())),
  env: Type.Optional(Type.Array(Type.Object({ name: Type.String(), value: Type.String() }))),
  provideClusterInfo: Type.Optional(Type.Boolean()),
});

const userSchema = Type.Object({
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
  token: text,
  tokenFile: text,
  username: text,
  password: text,
  as: text,
  'as-groups': Type.Optional(Type.Array(Type.String())),
  exec: Type.Optional(execSchema),
  'auth-provider': Type.Optional(
    Type.Object({ name: Type.String(), config: Type.Optional(Type.Record(Type.String(), Type.Unknown())) }),
  ),
});

const contextSchema = Type.Object({ cluster: Type.String(), user: text, namespace: text });

const fileSchema = Type.Object({
  clusters: listOf({ cluster: clusterSchema }),
  users: listOf({ user: Type.Optional(userSchema) }),
  contexts: listOf({ context: contextSchema }),
  'current-context': text,
});

function listOf<Entry extends Record<string, TSchema>>(entry: Entry) {
  return Type.Optional(Type.Array(Type.Object({ name: Type.String(), ...entry })));
}

export type KubeconfigCluster = Static<typeof clusterSchema>;
export type KubeconfigUser = Static<typeof userSchema>;
export type KubeconfigExec = Static<typeof execSchema>;

/** Which API server to talk to, and as whom; a context of a kubeconfig with all its paths absolute. */
export interface KubeAccess {
  readonly cluster: KubeconfigCluster;
  readonly user: KubeconfigUser;
  /** The namespace of the context or of the service account, else `default`. */
  readonly namespace: string;
}

/**
 * Finds the API server by the rules of kubectl: the files of `KUBECONFIG`, else `~/.kube/config`, else the service account
 * of the pod. Of two entries with the same name the first file's counts.
 *
 * @throws when none of these is there, or a file is no kubeconfig.
 */
export async function accessFromEnvironment(environment: Environment): Promise<KubeAccess> {
  const named = environment['KUBECONFIG'] ?? '';
  const home = environment['HOME'] ?? environment['USERPROFILE'] ?? '';
  const paths = named === '' ? [join(home, '.kube', 'config')] : named.split(delimiter).filter((path) => path !== '');
  const files = await Promise.all(paths.map(readIfPresent));
  const present = files.filter((file) => file !== undefined);
  if (present.length > 0) return selectContext(present);
  const inCluster = await accessFromPod(environment);
  if (inCluster === undefined) throw new Error(`No kubeconfig at ${paths.join(', ')} and no service account`);
  return inCluster;
}

/** As {@link accessFromEnvironment}, from one file. */
export async function accessFromFile(path: string): Promise<KubeAccess> {
  return selectContext([parseKubeconfig(path, await readFile(path, 'utf8'))]);
}

type KubeconfigFile = Static<typeof fileSchema>;

async function readIfPresent(path: string): Promise<KubeconfigFile | undefined> {
  const content = await readFile(path, 'utf8').catch(ignoreAbsence);
  return content === undefined ? undefined : parseKubeconfig(path, content);
}

function ignoreAbsence(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

/** What is wrong is said by place only: a kubeconfig is full of secrets. */
function parseKubeconfig(path: string, content: string): KubeconfigFile {
  let document: unknown;
  try {
    document = withoutNulls(parse(content, { prettyErrors: false, logLevel: 'error' }));
  } catch {
    throw new Error(`${path} is not valid YAML`);
  }
  if (!Value.Check(fileSchema, document)) {
    const faults = [...Value.Errors(fileSchema, document)].map((fault) => `${fault.instancePath} ${fault.message}`);
    throw new Error(`${path} is not a kubeconfig: ${faults.join('; ')}`);
  }
  return withAbsolutePaths(document, dirname(path));
}

/** kubectl writes `users: null` and reads it like an absent key. */
function withoutNulls(document: unknown): unknown {
  return JSON.parse(JSON.stringify(document ?? {}), (_key, value: unknown) => value ?? undefined);
}

function withAbsolutePaths(file: KubeconfigFile, directory: string): KubeconfigFile {
  const absolute = <Entry extends object>(entry: Entry, names: readonly (keyof Entry)[]): Entry => {
    const paths = names.flatMap((name) => {
      const path = entry[name];
      return typeof path === 'string' && path !== '' && !isAbsolute(path) ? [[name, join(directory, path)]] : [];
    });
    return { ...entry, ...Object.fromEntries(paths) };
  };
  return {
    ...file,
    clusters: (file.clusters ?? []).map(({ name, cluster }) => ({
      name,
      cluster: absolute(cluster, ['certificate-authority']),
    })),
    users: (file.users ?? []).map(({ name, user = {} }) => {
      const { exec, ...rest } = absolute(user, ['client-certificate', 'client-key', 'tokenFile']);
      // A bare command is looked up on the PATH.
      const found = exec?.command.includes('/') === true ? absolute(exec, ['command']) : exec;
      return { name, user: found === undefined ? rest : { ...rest, exec: found } };
    }),
  };
}

function selectContext(files: readonly KubeconfigFile[]): KubeAccess {
  const current = files.map((file) => file['current-context'] ?? '').find((name) => name !== '');
  const context = files.flatMap((file) => file.contexts ?? []).find(({ name }) => name === current)?.context;
  if (context === undefined) throw new Error('The kubeconfig has no current context');
  const cluster = files.flatMap((file) => file.clusters ?? []).find(({ name }) => name === context.cluster)?.cluster;
  if (cluster === undefined) throw new Error(`The kubeconfig has no cluster "${context.cluster}"`);
  const user = files.flatMap((file) => file.users ?? []).find(({ name }) => name === context.user)?.user;
  if (user === undefined && context.user !== undefined) {
    throw new Error(`The kubeconfig has no user "${context.user}"`);
  }
  return { cluster, user: user ?? {}, namespace: context.namespace ?? 'default' };
}

async function accessFromPod(environment: Environment): Promise<KubeAccess | undefined> {
  const host = environment['KUBERNETES_SERVICE_HOST'];
  const port = environment['KUBERNETES_SERVICE_PORT'];
  const namespace = await readFile(join(SERVICE_ACCOUNT_DIRECTORY, 'namespace'), 'utf8').catch(ignoreAbsence);
  if (host === undefined || port === undefined || namespace === undefined) return undefined;
  return {
    cluster: {
      server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
      'certificate-authority': join(SERVICE_ACCOUNT_DIRECTORY, 'ca.crt'),
    },
    user: { tokenFile: join(SERVICE_ACCOUNT_DIRECTORY, 'token') },
    namespace: namespace.trim(),
  };
}
