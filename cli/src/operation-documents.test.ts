import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { batchesOf, readDocuments } from './operation-documents.ts';

const directory = mkdtempSync(join(tmpdir(), 'documents-'));
afterAll(() => rmSync(directory, { recursive: true }));

function file(name: string, text: string): string {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

test('manifests have their ids', () => {
  const plain = file('plain.json', '{"a":"{ a }","b":"{ b }"}');
  expect(readDocuments('<path>', plain)).toEqual({ a: '{ a }', b: '{ b }' });
  const operations = [{ id: 'a', name: 'A', type: 'query', body: '{ a }' }];
  const apollo = file(
    'apollo.json',
    JSON.stringify({ format: 'apollo-persisted-query-manifest', version: 1, operations }),
  );
  expect(readDocuments('<path>', apollo)).toEqual({ a: '{ a }' });
});

test.each(['{', '[]', '7', '{"a":1}', '{"":"{ a }"}', '{"operations":[{"id":"a"}]}', '{"operations":[7]}'])(
  'the manifest %s is refused',
  (text) => {
    expect(() => readDocuments('<path>', file('wrong.json', text))).toThrow('<path>: it is neither');
  },
);

test('files are named by their hashes, and those of directories are read', () => {
  mkdirSync(join(directory, 'queries/more'), { recursive: true });
  const path = file('queries/a.graphql', '{ a }\n');
  file('queries/more/b.gql', '{ b }');
  file('queries/c.ts', 'no');
  expect(readDocuments('<path>', path)).toEqual({ [sha256('{ a }\n')]: '{ a }\n' });
  expect(readDocuments('<path>', join(directory, 'queries'))).toEqual({
    [sha256('{ a }\n')]: '{ a }\n',
    [sha256('{ b }')]: '{ b }',
  });
  expect(() => readDocuments('<path>', join(directory, 'nowhere'))).toThrow('<path>: ENOENT');
});

test('many are sent in several calls', () => {
  const many = Object.fromEntries(Array.from({ length: 2001 }, (_, at) => [`d${at}`, '{ a }']));
  expect(batchesOf(many).map((batch) => Object.keys(batch).length)).toEqual([1000, 1000, 1]);
  expect(Object.assign({}, ...batchesOf(many))).toEqual(many);
  const long = Object.fromEntries(['a', 'b', 'c'].map((id) => [id, 'x'.repeat(100_000)]));
  expect(batchesOf(long).map((batch) => Object.keys(batch))).toEqual([['a', 'b'], ['c']]);
  expect(batchesOf({})).toEqual([]);
});
