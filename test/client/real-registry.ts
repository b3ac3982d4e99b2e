import { randomBytes } from 'node:crypto';
import { freePorts } from '@rollcall/local/ports.ts';
import { startService, waitUntilReady } from '@rollcall/local/services.ts';
import { inject } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistryProcess } from '../support/registry.ts';
import type { Replica } from '../support/replica.ts';
import { freePort } from './contract-server.ts';

export interface RealRegistryOptions {
  /** Given to every registration. Default 60. */
  readonly ttlSeconds?: number;
  /** Whether an operator runs, which expires registrations. */
  readonly operator?: boolean;
  /** Whether writers show a token. */
  readonly asksForTokens?: boolean;
}

/**
 * The registry as users run it, on the shared API server, in a namespace and with a database of its
 * own.
 */
export interface RealRegistry extends AsyncDisposable {
  readonly url: string;
  readonly namespace: TestNamespace;
  /** Ends the process as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on its port. */
  restart(): Promise<void>;
  /** Starts another replica. @returns its base URL. */
  addReplica(): Promise<string>;
}

export async function startRealRegistry(options: RealRegistryOptions = {}) {
  const { ttlSeconds = 60, operator = false, asksForTokens = false } = options;
  await using stack = new AsyncDisposableStack();
  const namespace = await createNamespace('client');
  const database = stack.use(await createDatabase());
  const port = await freePort();
  const start = (settings: Record<string, string> = {}) =>
    startRegistryProcess({
      namespace: namespace.name,
      databaseUrl: database.url,
      settings: {
        ROLLCALL_TTL_SECONDS: String(ttlSeconds),
        ...(asksForTokens ? { ROLLCALL_AUTHENTICATION: 'token-review' } : {}),
        ...settings,
      },
    });
  let registry: Replica = await start({ ROLLCALL_PORT: String(port) });
  stack.defer(() => registry[Symbol.asyncDispose]());
  if (operator) await startOperator(stack, namespace.name);
  const kept = stack.move();
  return {
    url: `http://127.0.0.1:${port}`,
    namespace,
    kill: () => registry.process.stop({ signal: 'SIGKILL' }),
    async restart() {
      registry = await start({ ROLLCALL_PORT: String(port) });
    },
    async addReplica() {
      return kept.use(await start()).url;
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  } satisfies RealRegistry;
}

async function startOperator(stack: AsyncDisposableStack, namespace: string): Promise<void> {
  const [adminPort = 0] = await freePorts(1);
  const settings = { ROLLCALL_NAMESPACE: namespace, ROLLCALL_ADMIN_PORT: String(adminPort), ROLLCALL_IMPORT: 'false' };
  const operator = await startService(
    {
      name: `operator-${randomBytes(4).toString('hex')}`,
      script: 'operator/src/main.ts',
      env: { ...inject('podEnvironment'), ...settings },
    },
    {
      logDirectory: inject('temporaryDirectory'),
      env: { PATH: process.env['PATH'], ROLLCALL_HOST: '127.0.0.1' },
    },
  );
  stack.defer(() => operator.stop());
  await waitUntilReady(operator, adminPort);
}
