import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistryProcess } from '../support/registry.ts';
import type { Replica } from '../support/replica.ts';
import { createClient, requestToken, startGatewayProcess, type TestClient, tokenOf } from './gateway.ts';

const AT_ONCE = 8;
const ROUNDS = 4;
/** MiB: 16 of the one thread that checks secrets, and what else it and 32 requests take. */
const MOST = 48;

let namespace: TestNamespace;
let registry: Replica;
let client: TestClient;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = await createNamespace('gateway-memory');
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistryProcess({ namespace: namespace.name, databaseUrl: database.url }));
  client = await createClient(namespace, { id: 'tests', scopes: ['registrations:read'] });
});

afterAll(() => stack.disposeAsync());

function start(settings: Record<string, string> = {}): Promise<Replica> {
  return startGatewayProcess({
    namespace,
    registry: registry.url,
    settings: { ROLLCALL_LIMIT_ANONYMOUS: '10000', ROLLCALL_LIMIT_PREMIUM: '10000', ...settings },
  });
}

/** MiB. */
async function residentOf({ process: { pid } }: Replica): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

/** By ids that nobody has: each guess takes a hash. */
async function guessSecrets(gateway: Replica): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const ids = Array.from({ length: AT_ONCE }, (_, index) => `nobody-${round}-${index}`);
    const answers = await Promise.all(ids.map((id) => requestToken(gateway, { id, secret: 'a-guessed-secret' })));
    expect(answers.map(({ status }) => status)).toEqual(ids.map(() => 401));
    await Promise.all(answers.map((answer) => answer.arrayBuffer()));
  }
}

test('checking many secrets takes no more memory than checking one', async () => {
  await using gateway = await start();
  await tokenOf(gateway, client);
  const before = await residentOf(gateway);
  await guessSecrets(gateway);
  // Several threads that have checked one each would keep 16 MiB each.
  expect((await residentOf(gateway)) - before).toBeLessThan(MOST);
});
