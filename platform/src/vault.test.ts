import { randomBytes } from 'node:crypto';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createBlindIndex, createVault, parseVaultKeys, readVaultKeys, VaultError, type VaultKey } from './vault.ts';

const older: VaultKey = { id: '2026-01', key: randomBytes(32) };
const newer: VaultKey = { id: '2026-11', key: randomBytes(32) };
const vault = createVault([older]);

test.each(['', 'to: a@b.example', '\u{1f600}', 'x'.repeat(1_000_000)])('what was sealed is opened', (text) => {
  expect(vault.open(vault.seal(text, 'message 1'), 'message 1').toString()).toBe(text);
});

test('bytes that are no text are sealed as they are', () => {
  const bytes = randomBytes(1000);
  expect(vault.open(vault.seal(bytes, 'body 1'), 'body 1')).toEqual(bytes);
});

test('equal texts are sealed differently, and cannot be read', () => {
  const [one, two] = [vault.seal('secret text', 'a'), vault.seal('secret text', 'a')];
  expect(one.equals(two)).toBe(false);
  expect(one.includes('secret')).toBe(false);
});

test('what belongs to one row is not opened as that of another', () => {
  const sealed = vault.seal('text', 'message 1');
  expect(() => vault.open(sealed, 'message 2')).toThrow('belong to something else');
});

test('a changed bit anywhere is noticed', () => {
  const sealed = vault.seal('text', 'a');
  for (let bit = 0; bit < sealed.length * 8; bit += 1) {
    const changed = Buffer.from(sealed);
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    expect(() => vault.open(changed, 'a')).toThrow(VaultError);
  }
});

test('what is cut off anywhere is refused', () => {
  const sealed = vault.seal('text', 'a');
  for (let length = 0; length < sealed.length; length += 1)
    expect(() => vault.open(sealed.subarray(0, length), 'a')).toThrow(VaultError);
});

test('a key that is not known is named', () => {
  expect(() => createVault([newer]).open(vault.seal('text', 'a'), 'a')).toThrow('No key has the id "2026-01"');
});

test('the newest key seals, and older ones still open', () => {
  const rotated = createVault([newer, older]);
  expect(rotated.open(vault.seal('old', 'a'), 'a').toString()).toBe('old');
  expect(createVault([newer]).open(rotated.seal('new', 'a'), 'a').toString()).toBe('new');
});

test('a text is found by its index, also by that of an older key', () => {
  const before = createBlindIndex([older], 'recipient').of('a@b.example');
  const index = createBlindIndex([newer, older], 'recipient');
  expect(index.of('a@b.example')).not.toEqual(before);
  expect(index.candidates('a@b.example')).toEqual([index.of('a@b.example'), before]);
  expect(index.candidates('c@b.example')).not.toContainEqual(before);
});

test('an index for one purpose says nothing about another', () => {
  expect(createBlindIndex([older], 'recipient').of('a')).not.toEqual(createBlindIndex([older], 'customer').of('a'));
});

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');

test('keys are read in their order', async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'vault-'));
  const file = join(directory.path, 'keys.yaml');
  const text = `keys:\n- {id: '2026-11', key: ${base64(newer.key)}}\n- {id: '2026-01', key: ${base64(older.key)}}`;
  await writeFile(file, text);
  expect(await readVaultKeys(file)).toEqual([newer, older]);
  await expect(readVaultKeys(join(directory.path, 'none'))).rejects.toThrow('ENOENT');
});

const KEY = base64(randomBytes(32));

test.each([
  ['', '/ must be object'],
  ['keys: []', '/keys must not have fewer than 1 items'],
  [`keys: [{id: a b, key: "${KEY}"}]`, '/keys/0/id must match pattern'],
  [`keys: [{key: "${KEY}"}]`, '/keys/0 must have required properties id'],
  [`keys: [{id: a, key: "${KEY}"}, {id: a, key: "${KEY}"}]`, 'two have the id a'],
  [`keys: [{id: a, key: "${KEY.slice(0, 20)}"}]`, 'the key a is not 32 bytes in base64'],
  [`keys: [{id: a, key: "${KEY.slice(0, -1)}!"}]`, 'the key a is not 32 bytes in base64'],
  [`keys: [{id: a, key: "${KEY}", other: 1}]`, '/keys/0 must not have additional properties'],
  [`keys: [{id: a, key: "${KEY}]`, 'the file is not YAML'],
])('the fault of %j is named, without a key', (text, fault) => {
  expect(() => parseVaultKeys(text)).toThrow(fault);
  expect(() => parseVaultKeys(text)).not.toThrow(KEY.slice(0, 12));
});
