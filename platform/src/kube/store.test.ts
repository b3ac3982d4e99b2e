import { assert, property, shuffledSubarray } from 'fast-check';
import { expect, test } from 'vitest';
import type { KubeObject } from './resource-client.ts';
import { type Change, createStore } from './store.ts';

function object(name: string, uid: string, version: number): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: { name, namespace: 'ns', uid, resourceVersion: String(version) },
  };
}

function recorded() {
  const changes: string[] = [];
  const store = createStore<KubeObject>((change: Change<KubeObject>) => {
    changes.push(`${change.type} ${change.object.metadata.uid}@${change.object.metadata.resourceVersion}`);
  });
  return { store, changes };
}

test('an event older than our own write is ignored', () => {
  const { store, changes } = recorded();
  store.put(object('a', 'u1', 7));
  store.put(object('a', 'u1', 5));
  store.put(object('a', 'u1', 7));
  expect(changes).toEqual(['added u1@7']);
});

test('what was read again replaces what is known of the same version, and nothing newer', () => {
  const { store, changes } = recorded();
  store.put(object('a', 'u1', 7));
  store.reread(object('a', 'u1', 7));
  store.reread(object('a', 'u1', 6));
  store.reread(object('b', 'u2', 8));
  expect(changes).toEqual(['added u1@7', 'modified u1@7', 'added u2@8']);
});

test('an event that was under way when we deleted the object does not bring it back', () => {
  const { store, changes } = recorded();
  store.put(object('a', 'u1', 5));
  store.delete(object('a', 'u1', 5));
  store.put(object('a', 'u1', 6));
  store.put(object('a', 'u2', 9));
  expect(changes).toEqual(['added u1@5', 'deleted u1@5', 'added u2@9']);
});

test('a successor of the same name is a deletion and an addition, even when the deletion itself was missed', () => {
  const { store, changes } = recorded();
  store.put(object('a', 'u1', 5));
  store.put(object('a', 'u2', 9));
  store.put(object('a', 'u1', 6));
  store.remove(object('a', 'u1', 8));
  expect(changes).toEqual(['added u1@5', 'deleted u1@5', 'added u2@9']);
});

test('the late deletion event of a predecessor leaves the successor alone', () => {
  const { store } = recorded();
  store.put(object('a', 'u2', 9));
  store.remove(object('a', 'u1', 8));
  expect(store.get('ns/a')?.metadata.uid).toBe('u2');
});

test('what was no longer selected and is again comes back, but not as it was before', () => {
  const { store, changes } = recorded();
  store.put(object('a', 'u1', 5));
  store.remove(object('a', 'u1', 6));
  store.put(object('a', 'u1', 5));
  store.put(object('a', 'u1', 7));
  expect(changes).toEqual(['added u1@5', 'deleted u1@5', 'added u1@7']);
});

test('so it does by the answer to our own write, before the watch reports that it had gone', () => {
  const { store, changes } = recorded();
  store.put(object('a', 'u1', 5));
  store.put(object('a', 'u1', 7));
  store.remove(object('a', 'u1', 6));
  expect(store.get('ns/a')?.metadata.resourceVersion).toBe('7');
  expect(changes).toEqual(['added u1@5', 'modified u1@7']);
});

test('so it does by a list after one that lacked it', () => {
  const { store, changes } = recorded();
  store.put(object('a', 'u1', 5));
  store.replace([], '8');
  store.replace([object('a', 'u1', 9)], '10');
  expect(changes).toEqual(['added u1@5', 'deleted u1@5', 'added u1@9']);
});

test('a list removes what it lacks, but not what was written after it', () => {
  const { store, changes } = recorded();
  store.put(object('old', 'u1', 3));
  store.put(object('ours', 'u2', 12));
  store.replace([object('b', 'u3', 10)], '11');
  expect([...store.values()].map((known) => known.metadata.name)).toEqual(['ours', 'b']);
  expect(changes).toContain('deleted u1@3');
});

test('an answer that a list has overtaken does not bring back what the list lacks', () => {
  const { store, changes } = recorded();
  store.replace([object('b', 'u3', 10)], '11');
  store.put(object('a', 'u1', 9));
  store.put(object('a', 'u2', 12));
  expect(changes).toEqual(['added u3@10', 'added u2@12']);
});

test('whatever the order and repetition of events, the newest version wins and deleted objects stay away', () => {
  const events = [1, 2, 3].flatMap((life) => {
    const uid = `u${life}`;
    const base = life * 10;
    return [
      { type: 'put' as const, object: object('a', uid, base) },
      { type: 'put' as const, object: object('a', uid, base + 1) },
      { type: 'remove' as const, object: object('a', uid, base + 2) },
    ];
  });
  assert(
    property(shuffledSubarray(events, { minLength: events.length }), (shuffled) => {
      const { store } = recorded();
      for (const event of [...shuffled, ...shuffled]) store[event.type](event.object);
      expect(store.size).toBe(0);
    }),
  );
});
