import { expect, it } from 'vitest';
import {
  formatCheck,
  formatExplanation,
  formatGenerations,
  formatSdl,
  formatSubgraphs,
  type GenerationRecord,
} from './graph.ts';

const now = new Date('2026-11-27T12:00:00Z');

it('shows services with how they stand, and why', () => {
  const shop = {
    service: 'shop',
    url: 'http://shop/graphql',
    lastUpdated: '2026-11-27T11:50:00.000Z',
    status: 'composed',
    version: '1.4.0',
  };
  const error = { code: 'FIELD_TYPE_MISMATCH', message: 'Type of "a" differs' };
  const users = { ...shop, service: 'users', url: 'http://users/graphql', status: 'held', version: null, error };
  expect(formatSubgraphs([shop, users], now)).toBe(
    [
      'SERVICE   STATUS     VERSION   CHANGED   URL                    ERROR',
      'shop      composed   1.4.0     10m       http://shop/graphql    -',
      'users     held       -         10m       http://users/graphql   Type of "a" differs',
      '',
    ].join('\n'),
  );
});

it('shows graphs with what came, changed and went', () => {
  const createdAt = '2026-11-27T11:00:00.000Z';
  const hash = 'a'.repeat(64);
  const generations: readonly GenerationRecord[] = [
    { generation: 4, hash, createdAt, subgraphs: { shop: '2', constructor: '1' } },
    { generation: 3, hash, createdAt, subgraphs: { shop: '1', users: '1' } },
    { generation: 2, hash, createdAt, subgraphs: { shop: '1', users: '1' } },
  ];
  expect(formatGenerations(generations, now, 3)).toBe(
    [
      'GRAPH   AGE   HASH           SERVICES   PINNED   CHANGES',
      '4       60m   aaaaaaaaaaaa   2          -        +constructor ~shop -users',
      '3       60m   aaaaaaaaaaaa   2          pinned   -',
      '2       60m   aaaaaaaaaaaa   2          -        -',
      '',
    ].join('\n'),
  );
});

it('says that a schema composes, or why it does not', () => {
  const composed = { service: 'shop', composition: { status: 'composed', errors: [] }, operations: 3 };
  expect(formatCheck({ ...composed, broken: [] }, now)).toBe(
    'The schema of shop composes with the others. It breaks none of 3 operations of clients.\n',
  );
  const operation = {
    hash: '0123456789abcdef',
    name: 'Users',
    clients: ['web', 'app'],
    count: 7,
    lastUsedAt: '2026-11-27T11:00:00.000Z',
    errors: ['Cannot query "\u001b[2Jname".', 'No.'],
  };
  expect(formatCheck({ ...composed, broken: [operation] }, now)).toBe(
    [
      'The schema of shop composes with the others. It breaks 1 of 3 operations of clients:',
      '',
      'OPERATION   HASH           COUNT   LAST USED   CLIENTS   ERROR',
      'Users       0123456789ab   7       60m         web app   Cannot query "\uFFFD[2Jname". No.',
      '',
    ].join('\n'),
  );
  const errors = [{ code: 'INVALID_GRAPHQL', message: 'Unexpected\u001b[2J Name' }];
  const held = { service: 'shop', composition: { status: 'held', errors }, operations: 0, broken: [] };
  expect(formatCheck(held, now)).toBe('CODE              MESSAGE\nINVALID_GRAPHQL   Unexpected\uFFFD[2J Name\n');
});

it('shows a plan step by step', () => {
  const fetch = { kind: 'fetch', operation: 'query' } as const;
  const plan = {
    kind: 'sequence',
    steps: [
      { ...fetch, service: 'users', entities: [], query: '{\n  users\n}' },
      { ...fetch, service: 'shop\u001b[2J', entities: ['users.@'], query: '{ a }' },
    ],
  } as const;
  expect(formatExplanation({ generation: 3, cost: 12, plan, errors: [] })).toBe(
    [
      'Graph 3, estimated cost 12',
      'In sequence:',
      '  query at users',
      '    {',
      '      users',
      '    }',
      '  query at shop\uFFFD[2J for entities at users.@',
      '    { a }',
      '',
    ].join('\n'),
  );
  expect(formatExplanation({ generation: 3, cost: 0, plan: null, errors: [] })).toContain('No service is asked.');
  expect(formatExplanation({ generation: 3, cost: null, plan: null, errors: [{ message: 'No.' }] })).toBe('No.\n');
});

it('shows SDL line by line, without what moves a cursor', () => {
  expect(formatSdl('"""\n\ta\u001b[2J\n"""\ntype Query')).toBe('"""\n\ta\uFFFD[2J\n"""\ntype Query\n');
});
