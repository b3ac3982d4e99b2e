import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry, type TestRegistry } from '../support/registry.ts';
import type { Replica } from '../support/replica.ts';
import { createClient, requestToken, startGateway, type TestClient, tokenOf } from './gateway.ts';

const AT_ONCE = 8;
const ROUNDS = 4;
/** MiB; what checking one secret takes for a moment. */
const SCRYPT = 16;

let namespace: TestNamespace;
let registry: TestRegistry;
let client: TestClient;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = stack.use(await createNamespace('gateway-memory'));
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url }));
  client = await createClient(namespace, { id: 'tests', scopes: ['registrations:read'] });
});

afterAll(() => stack.disposeAsync());

function start(settings: Record<string, string> = {}): Promise<Replica> {
  return startGateway({
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

async function issueTokens(gateway: Replica): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => requestToken(gateway, client)));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: AT_ONCE }, () => 200));
    await Promise.all(answers.map((answer) => answer.arrayBuffer()));
  }
}

test('what checking secrets takes goes back to the system', async () => {
  await using gateway = await start();
  await tokenOf(gateway, client);
  const before = await residentOf(gateway);
  await issueTokens(gateway);
  // Threads that have checked one each would keep theirs.
  expect((await residentOf(gateway)) - before).toBeLessThan(SCRYPT);
});
