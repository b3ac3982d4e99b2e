import { readFile } from 'node:fs/promises';
import type { Clock } from '../clock.ts';
import type { Environment } from '../config.ts';
import { type PluginCredential, runCredentialPlugin } from './credential-plugin.ts';
import type { KubeAccess, KubeconfigCluster, KubeconfigUser } from './kubeconfig.ts';

/** Files are read again after this long: service-account tokens are rotated in place. */
const MAX_AGE_MS = 30_000;
/** However many requests are refused, a renewal is not tried more often. */
const RENEWAL_PAUSE_MS = 1000;

export interface TlsCredentials {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly rejectUnauthorized?: boolean;
  readonly servername?: string;
}

/** What a request is authenticated with, and what the server is verified by. */
export interface Credentials {
  readonly tls: TlsCredentials;
  readonly headers: Readonly<Record<string, string | string[]>>;
}

export interface CredentialSource {
  /** The credentials to use now. The same object as long as nothing changed. */
  get(): Promise<Credentials>;
  /** The server refused these: reads everything anew, unless that has just been done. @returns whether there are others. */
  renew(refused: Credentials): Promise<boolean>;
}

export interface CredentialSourceOptions {
  readonly access: KubeAccess;
  readonly clock: Clock;
  /** What credential plugins are started with. */
  readonly environment: Environment;
}

/** Reads the credentials a first time, so that a wrong path or a failing plugin shows at once. */
export async function createCredentialSource(options: CredentialSourceOptions): Promise<CredentialSource> {
  const { access, clock } = options;
  const readUser = userReader(options);
  let current = await read();
  let readAtMs = clock.monotonicMs();
  let reading: Promise<void> | undefined;

  async function read(force = false): Promise<Credentials> {
    const [cluster, user] = await Promise.all([clusterTls(access.cluster), readUser(force)]);
    return { tls: { ...cluster, ...user.tls }, headers: user.headers };
  }

  async function refresh(force: boolean): Promise<void> {
    readAtMs = clock.monotonicMs();
    try {
      const next = await read(force);
      if (JSON.stringify(next) !== JSON.stringify(current)) current = next;
    } catch {
      // What was read last may serve longer than a file that is missing just now; if not, the server says so.
    } finally {
      reading = undefined;
    }
  }

  return {
    async get() {
      if (clock.monotonicMs() - readAtMs >= MAX_AGE_MS) reading ??= refresh(false);
      await reading;
      return current;
    },
    async renew(refused) {
      await reading;
      if (current === refused && clock.monotonicMs() - readAtMs >= RENEWAL_PAUSE_MS) reading ??= refresh(true);
      await reading;
      return current !== refused;
    },
  };
}

async function clusterTls(cluster: KubeconfigCluster): Promise<TlsCredentials> {
  const ca = await dataOrFile(cluster['certificate-authority-data'], cluster['certificate-authority']);
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cluster['insecure-skip-tls-verify'] === true ? { rejectUnauthorized: false } : {}),
    ...(cluster['tls-server-name'] === undefined ? {} : { servername: cluster['tls-server-name'] }),
  };
}

type UserReader = (force: boolean) => Promise<Credentials>;

function userReader({ access, clock, environment }: CredentialSourceOptions): UserReader {
  const { user, cluster } = access;
  let plugin: PluginCredential | undefined;

  async function pluginCredential(force: boolean): Promise<PluginCredential> {
    if (user.exec === undefined) return {};
    if (!force && plugin !== undefined && !expired(plugin, clock)) return plugin;
    plugin = await runCredentialPlugin(user.exec, { cluster, environment });
    return plugin;
  }

  const readLegacy = legacyReader(access);
  return async (force) => {
    const [cert, key, token, credential, legacy] = await Promise.all([
      dataOrFile(user['client-certificate-data'], user['client-certificate']),
      dataOrFile(user['client-key-data'], user['client-key']),
      user.tokenFile === undefined ? user.token : readToken(user.tokenFile),
      pluginCredential(force),
      readLegacy(),
    ]);
    const certificate = credential.clientCertificateData ?? cert;
    const privateKey = credential.clientKeyData ?? key;
    const bearer = token ?? credential.token;
    return {
      tls: {
        ...(certificate === undefined ? {} : { cert: certificate }),
        ...(privateKey === undefined ? {} : { key: privateKey }),
      },
      headers: {
        ...legacy,
        ...(bearer === undefined ? basic(user) : { authorization: `Bearer ${bearer}` }),
        ...(user.as === undefined ? {} : { 'impersonate-user': user.as }),
        ...(user['as-groups'] === undefined ? {} : { 'impersonate-group': user['as-groups'] }),
      },
    };
  };
}

function expired({ expirationTimestamp }: PluginCredential, clock: Clock): boolean {
  return expirationTimestamp !== undefined && Date.parse(expirationTimestamp) - clock.now().getTime() < MAX_AGE_MS;
}

async function dataOrFile(data: string | undefined, path: string | undefined): Promise<string | undefined> {
  if (data !== undefined && data !== '') return Buffer.from(data, 'base64').toString('utf8');
  return path === undefined || path === '' ? undefined : readFile(path, 'utf8');
}

async function readToken(path: string): Promise<string> {
  const token = (await readFile(path, 'utf8')).trim();
  if (token === '') throw new Error(`The token file ${path} is empty`);
  return token;
}

function basic({ username, password }: KubeconfigUser): Record<string, string> {
  if (username === undefined || username === '') return {};
  return { authorization: `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}` };
}

/**
 * `auth-provider` (OpenID Connect with a refresh token, kept by kubectl for old set-ups) is left to client-node. It is
 * loaded only then: it brings the models of every Kubernetes kind with it, 55 MB of memory that nothing else here needs.
 */
function legacyReader({ cluster, user }: KubeAccess): () => Promise<Record<string, string>> {
  const provider = user['auth-provider'];
  if (provider === undefined) return async () => ({});
  const loading = import('@kubernetes/client-node/dist/config.js').then(({ KubeConfig }) => {
    const config = new KubeConfig();
    config.loadFromClusterAndUser(
      { name: 'cluster', server: cluster.server, skipTLSVerify: false },
      { name: 'user', authProvider: provider },
    );
    return config;
  });
  return async () => {
    const options: Parameters<Awaited<typeof loading>['applyToHTTPSOptions']>[0] = {};
    await (await loading).applyToHTTPSOptions(options);
    const headers = Object.entries(options.headers ?? {});
    return Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), String(value)]));
  };
}
