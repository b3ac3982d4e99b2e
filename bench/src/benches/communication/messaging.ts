import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDirectory } from '@rollcall/local/cache-directory.ts';
import { defaultCacheDirectory } from '@rollcall/local/kubernetes-binaries.ts';
import { findMailpit, startMailpit } from '@rollcall/local/mailpit.ts';
import { freePorts } from '@rollcall/local/ports.ts';
import { startRedis } from '@rollcall/local/redis.ts';
import { findRedisBinary } from '@rollcall/local/redis-binary.ts';
import { writeVaultKeys } from '@rollcall/local/vault-keys.ts';
import { identityHeaders } from '@rollcall/platform/http/identity.ts';
import { readVaultKeys, type VaultKey } from '@rollcall/platform/vault.ts';
import type { BenchContext } from '../../bench.ts';
import type { OwnPart } from '../../load/tasks.ts';
import { startCallers } from '../../stage/callers.ts';
import type { RollcallSubject } from '../../stage/stage.ts';
import { connectToTables, type Tables } from '../../stage/tables.ts';

/** Connections to the mail server, of the service and of the bare pool. */
export const SMTP_CONNECTIONS = 5;
const SCOPE = 'messages:send messages:read';

/** One replica of communication on a database, a Redis and a mail server of its own. */
export interface Messaging {
  readonly service: RollcallSubject;
  readonly databaseUrl: string;
  readonly tables: Tables;
  readonly keys: readonly VaultKey[];
  readonly smtpPort: number;
  /** The header of a caller. @param scope of sending and reading when absent. */
  callerOf(subject: string, scope?: string): Promise<OwnPart>;
}

/** @throws Error where there is no Mailpit. */
export async function startMessaging(
  stack: AsyncDisposableStack,
  { stage, log }: Pick<BenchContext, 'stage' | 'log'>,
): Promise<Messaging> {
  const found = await findMailpit({
    assetsDirectory: process.env['KUBEBUILDER_ASSETS'],
    cacheDirectory: defaultCacheDirectory(process.env),
    log,
  });
  if ('problem' in found) throw new Error(found.problem);
  const directory = (name: string): string => join(stage.directory, `communication-${name}`);
  const { smtpPort } = stack.use(await startMailpit({ directory: directory('mailpit'), file: found.file }));
  const binary = await findRedisBinary({
    redisServer: process.env['REDIS_SERVER'],
    cacheDirectory: cacheDirectory(process.env, 'redis'),
    log,
  });
  const redis = stack.use(await startRedis({ directory: directory('redis'), binary }));
  const [keysPort = 0] = await freePorts(1);
  const callers = stack.use(await startCallers(keysPort));
  const databaseUrl = await stage.createDatabase('communication');
  const keysFile = await writeVaultKeys(directory('keys.json'));
  const service = await stage.startCommunication({
    ROLLCALL_DATABASE_URL: databaseUrl,
    ROLLCALL_REDIS_URL: redis.url,
    ROLLCALL_VAULT_KEYS_FILE: keysFile,
    ROLLCALL_PROVIDERS_FILE: await writeProviders(directory('providers.json'), smtpPort),
    ROLLCALL_PROVIDER_ADDRESSES: 'any',
    ROLLCALL_GATEWAY_KEYS_URL: callers.jwksUrl,
    ROLLCALL_PUBLIC_URL: 'https://gateway.example',
    ROLLCALL_ACCESS_LOG: 'off',
  });
  return {
    service,
    databaseUrl,
    tables: stack.use(await connectToTables(databaseUrl, 'communication')),
    keys: await readVaultKeys(keysFile),
    smtpPort,
    async callerOf(subject, scope = SCOPE) {
      return { headers: { [identityHeaders.token]: await callers.identityOf('communication', subject, scope) } };
    },
  };
}

async function writeProviders(file: string, port: number): Promise<string> {
  const mailpit = { name: 'mailpit', kind: 'smtp', host: '127.0.0.1', port, tls: 'none', bounceDomain: 'shop.example' };
  const providers = {
    email: { from: { address: 'shop@shop.example' }, providers: [{ ...mailpit, connections: SMTP_CONNECTIONS }] },
  };
  await writeFile(file, JSON.stringify(providers));
  return file;
}

/** Callers of so many subjects: each may send 100 mails a minute. */
export function callersOf(messaging: Messaging, prefix: string, count: number): Promise<OwnPart[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => messaging.callerOf(`${prefix}-${index}`)));
}

const PARAGRAPH = 'Thank you for your order. It leaves our store tomorrow, and you will hear of it again. ';

/** What each mail says. `{name}` stands for a number. */
export const MAIL = {
  to: 'buyer-{name}@example.com',
  subject: 'Your order {name}',
  text: PARAGRAPH.repeat(5),
  html: `<p>${PARAGRAPH.repeat(5)}</p>`,
} as const;
