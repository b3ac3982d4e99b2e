import { hash } from 'node:crypto';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fileMatches, parseChecksum } from './checksum.ts';

const hex64 = 'Ab'.repeat(32);

test.each([
  { text: `sha256:${hex64}`, checksum: { algorithm: 'sha256', hex: hex64.toLowerCase() } },
  { text: `SHA512:${hex64}${hex64}`, checksum: { algorithm: 'sha512', hex: (hex64 + hex64).toLowerCase() } },
  { text: `sha512:${hex64}`, checksum: undefined },
  { text: `sha256:${hex64}${hex64}`, checksum: undefined },
  { text: `sha256:${hex64.slice(1)}g`, checksum: undefined },
  { text: `sha256:${hex64}\n`, checksum: undefined },
  { text: `sha1:${hex64}`, checksum: undefined },
  { text: hex64, checksum: undefined },
])('$text', ({ text, checksum }) => {
  expect(parseChecksum(text)).toEqual(checksum);
});

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rollcall-checksum-'));
  await writeFile(join(directory, 'file'), 'hello');
  await symlink('file', join(directory, 'link'));
});

afterEach(() => rm(directory, { recursive: true, force: true }));

test.each([
  { name: 'file', text: 'hello', maxBytes: 5, matches: true },
  { name: 'file', text: 'hello', maxBytes: 4, matches: false },
  { name: 'file', text: 'other', maxBytes: 5, matches: false },
  { name: 'link', text: 'hello', maxBytes: 5, matches: false },
  { name: 'missing', text: 'hello', maxBytes: 5, matches: false },
  { name: '.', text: 'hello', maxBytes: 9999, matches: false },
])(
  '$name of at most $maxBytes bytes with the checksum of $text: $matches',
  async ({ name, text, maxBytes, matches }) => {
    for (const algorithm of ['sha256', 'sha512'] as const) {
      const checksum = { algorithm, hex: hash(algorithm, text, 'hex') };
      expect(await fileMatches(join(directory, name), checksum, maxBytes)).toBe(matches);
    }
  },
);
