import { existsSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { delimiter, join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import type { Environment } from '../process/config.ts';
import type { Credentials, KubeAccess } from './access.ts';

/** The files that kubectl reads: those of `KUBECONFIG`, else the one in the home directory. */
export function kubeconfigPaths(environment: Environment): readonly string[] {
  const named = (environment['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '');
  if (named.length > 0) return named;
  return [join(environment['HOME'] ?? environment['USERPROFILE'] ?? '', '.kube', 'config')];
}

/**
 * The access that the current context of kubeconfig files gives. Files that are not there are left
 * out.
 *
 * @throws when none is there or one is no kubeconfig, without repeating what it holds.
 */
export function kubeconfigAccess(paths: readonly string[]): KubeAccess {
  let config = load(paths);
  const cluster = config.getCurrentCluster();
  const context = config.getContextObject(config.getCurrentContext());
  if (context === null) throw new Error(`The kubeconfig ${paths.join(', ')} has no current context`);
  if (cluster === null) throw new Error(`The kubeconfig has no cluster "${context.cluster}"`);
  if (context.user !== undefined && context.user !== '' && config.getCurrentUser() === null) {
    throw new Error(`The kubeconfig has no user "${context.user}"`);
  }
  return {
    server: cluster.server,
    proxyUrl: cluster.proxyUrl,
    namespace: context.namespace ?? 'default',
    async readCredentials(refused) {
      // What a plugin answered and what the files said is kept in it.
      if (refused) config = load(paths);
      const options: RequestOptions = {};
      await config.applyToHTTPSOptions(options);
      return credentialsOf(options);
    },
  };
}

function load(paths: readonly string[]): KubeConfig {
  const present = paths.filter((path) => existsSync(path));
  if (present.length === 0) throw new Error(`No kubeconfig at ${paths.join(', ')} and no service account`);
  const config = new KubeConfig();
  for (const path of present) {
    const file = new KubeConfig();
    try {
      file.loadFromFile(path);
    } catch {
      // A parser quotes from what it reads, and a kubeconfig is full of secrets.
      throw new Error(`${path} is not a kubeconfig: kubectl config view --kubeconfig ${path} says why`);
    }
    config.mergeConfig(file, config.getCurrentContext() !== undefined);
  }
  return config;
}

function credentialsOf(options: RequestOptions): Credentials {
  const { ca, cert, key, rejectUnauthorized, servername, auth } = options;
  const tls = Object.entries({ ca, cert, key, rejectUnauthorized, servername }).flatMap(([name, value]) =>
    value === undefined || value === null ? [] : [[name, Buffer.isBuffer(value) ? value.toString('utf8') : value]],
  );
  const headers = Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value)]);
  if (auth !== undefined && auth !== null) {
    headers.push(['authorization', `Basic ${Buffer.from(auth).toString('base64')}`]);
  }
  return { tls: Object.fromEntries(tls), headers: Object.fromEntries(headers) };
}
