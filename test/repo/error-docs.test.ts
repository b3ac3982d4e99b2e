import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { generateErrorDocs } from '../../tools/error-docs.ts';

test('docs/errors.md is what `npm run generate` makes of the catalogues', async () => {
  expect(await readFile(new URL('../../docs/errors.md', import.meta.url), 'utf8')).toBe(generateErrorDocs());
});
