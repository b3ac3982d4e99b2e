import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');
/** What processes of the image are made of. */
const SOURCES = '{clients,crds,fetcher,image,operator,platform,services}/**/*.ts';
const IMPORTS_VALUES = /^import (?!type\b)[^;]*from 'node:http';/m;

test('no process loads the undici within Node by an import from node:http', async () => {
  const found: string[] = [];
  for await (const file of glob(SOURCES, { cwd: ROOT, exclude: ['**/node_modules', '**/*.test.ts'] })) {
    if (IMPORTS_VALUES.test(await readFile(join(ROOT, file), 'utf8'))) found.push(file);
  }
  expect(found).toEqual([]);
});
