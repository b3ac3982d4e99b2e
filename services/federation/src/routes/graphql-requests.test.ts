import { describe, expect, test } from 'vitest';
import { askedByGet, askedByPost } from './graphql-requests.ts';

const query = '{ a }';
const hash = 'a'.repeat(64);
const persisted = (sha256Hash: string, version = 1) => JSON.stringify({ persistedQuery: { version, sha256Hash } });

describe('by GET', () => {
  test.each([
    [undefined, undefined],
    ['', undefined],
    ['null', undefined],
    ['{}', {}],
    ['{"id":"1"}', { id: '1' }],
  ])('the variables %s are %j', (variables, asked) => {
    expect(askedByGet({ query, ...(variables === undefined ? {} : { variables }) }).variables).toEqual(asked);
  });

  test.each(['[]', '1', '"text"', '{'])('%s is refused as variables and as extensions', (text) => {
    expect(() => askedByGet({ query, variables: text })).toThrow('query/variables must be a JSON object');
    expect(() => askedByGet({ query, extensions: text })).toThrow('query/extensions must be a JSON object');
  });

  test('a document may be named by its hash alone', () => {
    expect(askedByGet({ extensions: persisted(hash) }).document).toEqual({ id: undefined, query: undefined, hash });
    expect(askedByGet({ query, extensions: persisted(hash) }).document).toEqual({ id: undefined, query, hash });
    expect(askedByGet({ query, extensions: '{"clientLibrary":{"name":"x"}}' }).document.hash).toBeUndefined();
  });

  test.each([persisted('a'), persisted(hash, 2), '{"persistedQuery":7}', persisted(hash.toUpperCase())])(
    'the extensions %s are refused',
    (extensions) => {
      expect(() => askedByGet({ extensions })).toThrow('query/extensions/persistedQuery');
    },
  );

  test('no document at all is refused', () => {
    for (const asked of [{}, { extensions: '{}' }, { extensions: 'null' }])
      expect(() => askedByGet(asked)).toThrow('query/query is required');
  });
});

test('a document that was published is named by its id, and by nothing else', () => {
  expect(askedByPost({ documentId: 'a' }).document).toEqual({ id: 'a', query: undefined, hash: undefined });
  expect(askedByGet({ documentId: 'a' }).document.id).toBe('a');
  expect(() => askedByPost({ documentId: 'a', query })).toThrow('body/documentId must not be there');
  expect(() => askedByGet({ documentId: 'a', extensions: persisted(hash) })).toThrow('query/documentId');
});

test('by POST nulls are as what is not there', () => {
  expect(askedByPost({ query, variables: null, operationName: null, extensions: null })).toEqual({
    document: { id: undefined, query, hash: undefined },
    variables: undefined,
    operationName: undefined,
    onlyQueries: false,
  });
  expect(() => askedByPost({ extensions: {} })).toThrow('body/query is required');
});
