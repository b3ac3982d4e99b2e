import { test } from 'vitest';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistryProcess } from '../support/registry.ts';
import type { Replica } from '../support/replica.ts';
import { operationsOf, runSchemathesis } from './schemathesis.ts';

/** Cuts of the operations in two: a secret that is stored for all services has every call after it refused. */
const CONFIG = 'POST /webhooks/config';
/** Each has requests made up for every rule of its schema, right and wrong, and so many at random. */
const EXAMPLES = ['--max-examples', '25'];

async function startOpenRegistry(stack: AsyncDisposableStack): Promise<Replica> {
  const namespace = await createNamespace('openapi');
  const database = stack.use(await createDatabase());
  return stack.use(await startRegistryProcess({ namespace: namespace.name, databaseUrl: database.url }));
}

test.concurrent('the registry does what its OpenAPI document says, and nothing else', async ({ expect }) => {
  await using stack = new AsyncDisposableStack();
  const registry = await startOpenRegistry(stack);
  const { code, report, cases, operations } = await runSchemathesis(`${registry.url}/api/v1`, [
    ...EXAMPLES,
    '--exclude-name',
    CONFIG,
  ]);
  if (code !== 0) throw new Error(report);
  expect(operations).toBe((await operationsOf(`${registry.url}/api/v1`)) - 1);
  expect(cases).toBeGreaterThan(1800);
});

test.concurrent('so does the configuration of webhooks, and what its secret protects', async ({ expect }) => {
  await using stack = new AsyncDisposableStack();
  const registry = await startOpenRegistry(stack);
  const { code, report, cases, operations } = await runSchemathesis(`${registry.url}/api/v1`, [
    ...EXAMPLES,
    '--include-path-regex',
    '^/webhooks/',
  ]);
  if (code !== 0) throw new Error(report);
  expect(operations).toBeGreaterThanOrEqual(12);
  expect(cases).toBeGreaterThan(600);
});
