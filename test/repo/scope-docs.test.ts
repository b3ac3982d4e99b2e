import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { generateScopeDocs } from '../../tools/scope-docs.ts';

test('docs/scopes.md is what `npm run generate` makes of the table', async () => {
  expect(await readFile(new URL('../../docs/scopes.md', import.meta.url), 'utf8')).toBe(generateScopeDocs());
});
