import { expect, test } from 'vitest';
import { fakeNodes, kwokConfiguration } from './kwok-stages.ts';

interface Named {
  readonly metadata: { readonly name: string };
}

test('the configuration holds one JSON document per stage, nodes included, each with a name of its own', () => {
  const documents = kwokConfiguration()
    .split('---\n')
    .filter((text) => text !== '')
    .map((text): Named => JSON.parse(text));
  const names = documents.map((document) => document.metadata.name);
  expect(new Set(names).size).toBe(names.length);
  expect(names).toEqual(expect.arrayContaining(['pod-ready', 'pod-gone', 'node-ready', 'node-heartbeat']));
});

test('fakeNodes numbers the nodes from 1', () => {
  const { items }: { items: readonly Named[] } = JSON.parse(fakeNodes(2));
  expect(items.map((node) => node.metadata.name)).toEqual(['fake-1', 'fake-2']);
});
