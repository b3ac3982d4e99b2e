import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { generateCrdTypes } from '../tools/crd-types.ts';

it('types.gen.ts is what `npm run generate` makes of the YAML', async () => {
  expect(await readFile(new URL('types.gen.ts', import.meta.url), 'utf8')).toBe(await generateCrdTypes());
});
