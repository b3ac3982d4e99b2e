import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry, type TestRegistry } from '../support/registry.ts';
import type { Replica } from '../support/replica.ts';
import { createClient, requestToken, startBackend, startGateway, type TestClient, tokenOf } from './gateway.ts';

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
  client = await createClient(namespace, { id: 'tests' });
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

test('a gateway at work has one undici, not that within Node besides', async () => {
  const list = join(inject('temporaryDirectory'), 'modules-of-a-gateway');
  const tell = `process.on("exit",()=>process.getBuiltinModule("fs").writeFileSync("${list}",process.moduleLoadList.join("\\n")))`;
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const keys = [{ ...(await exportJWK(publicKey)), kid: 'theirs' }];
  await using issuer = await startBackend((_, response) => void response.end(JSON.stringify({ keys })));
  const trusted = { issuer: 'https://issuer.example', audience: 'tests', jwksUrl: issuer.url, defaultTier: 'standard' };
  await using gateway = await start({
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(tell)}`,
    ROLLCALL_EXTERNAL_ISSUERS: JSON.stringify([trusted]),
  });
  const theirs = await new SignJWT({ iss: trusted.issuer, aud: trusted.audience, sub: 'tests' })
    .setProtectedHeader({ alg: 'ES256', kid: 'theirs' })
    .setExpirationTime('1h')
    .sign(privateKey);
  for (const token of [await tokenOf(gateway, client), theirs]) {
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(`${gateway.url}/api/v1/registry/services`, { headers })).status).toBe(200);
  }
  await gateway.process.stop();
  const modules = (await readFile(list, 'utf8')).split('\n');
  expect(modules).toContain('NativeModule http');
  expect(modules.filter((name) => name.includes('undici'))).toEqual([]);
});
