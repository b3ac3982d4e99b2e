import { createLogger } from '@rollcall/platform/process/log.ts';
import { buildSchema } from 'graphql/index.js';
import { expect, test } from 'vitest';
import { createUsage, type OperationUse } from './usage.ts';

test('a document that cannot be read loses no counts of others', async () => {
  const added: OperationUse[] = [];
  const usage = createUsage({
    addUses: async (uses) => void added.push(...uses),
    log: createLogger('test', 'silent'),
  });
  const schema = buildSchema('type Query { a: Int b: Int }');
  const record = (query: string) => usage.record({ query, operationName: undefined, client: undefined, schema });
  for (const query of ['{ a }', '{', '{ b }', '{ a }']) record(query);
  await usage.stop();
  expect(added.map(({ count }) => count).toSorted((a, b) => a - b)).toEqual([1, 2]);
});
