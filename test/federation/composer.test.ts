import { setTimeout as pause } from 'node:timers/promises';
import { LIMIT_CODE } from '@rollcall/federation/composition/compose.ts';
import { type Composer, createComposer } from '@rollcall/federation/composition/composer.ts';
import { buildSchema, getIntrospectionQuery, graphqlSync } from 'graphql/index.js';
import { expect, onTestFinished, test } from 'vitest';

const users = { name: 'users', url: 'http://users/graphql', sdl: 'type Query { user: String }' };
const products = { name: 'products', url: 'http://products/graphql', sdl: 'type Query { product: String }' };

function composer(timeLimitMs?: number, idleMs?: number): Composer {
  const made = createComposer(timeLimitMs, idleMs);
  onTestFinished(() => made.stop());
  return made;
}

test('it composes in its thread, one after the other', async () => {
  const { compose } = composer(20_000);
  const [both, one, none] = await Promise.all([
    compose([users, products]),
    compose([users]),
    compose([{ ...users, sdl: 'type' }]),
  ]);
  expect(both.supergraph).toContain('product: String');
  expect(one?.supergraph).toBeDefined();
  expect(one?.supergraph).not.toContain('product: String');
  expect(none.errors).toEqual([{ code: 'INVALID_GRAPHQL', message: expect.stringContaining('[users]') }]);
});

test('what takes longer than it may is an error, and the next task has a new thread', async () => {
  const { compose } = composer(1);
  const types = Array.from({ length: 2000 }, (_, n) => `type T${n} { next: T${(n + 1) % 2000} }`);
  const large = { ...users, sdl: `type Query { first: T0 } ${types.join(' ')}` };
  for (let times = 0; times < 2; times += 1)
    expect(await compose([large])).toEqual({
      errors: [{ code: LIMIT_CODE, message: expect.stringContaining('0.001 s') }],
    });
});

test('it goes on after the thread was ended, as there was nothing to do', async () => {
  const { compose, readGraph } = composer(20_000, 0);
  const { supergraph = '' } = await compose([users]);
  for (let times = 0; times < 3; times += 1) {
    await pause(20);
    expect((await readGraph(supergraph, {})).pieces.join('')).toContain('user: String');
  }
  await expect(readGraph('type', {})).rejects.toThrow('Syntax Error');
});

test('an SDL that is nested without end is an error, and the thread goes on', async () => {
  const { compose } = composer(20_000);
  const deep = `type Query { a: ${'['.repeat(300_000)}Int }`;
  expect((await compose([{ ...users, sdl: deep }])).errors).toHaveLength(1);
  expect((await compose([users])).errors).toBeUndefined();
});

test('it prints what introspection says', async () => {
  const { sdlOf } = composer(20_000);
  const schema = buildSchema(users.sdl);
  const answer = JSON.stringify(graphqlSync({ schema, source: getIntrospectionQuery() }));
  expect(await sdlOf(answer)).toBe('type Query {\n  user: String\n}');
  await expect(sdlOf('{"data":null}')).rejects.toThrow('The answer has no data');
  await expect(sdlOf('{"data":{"__schema":{}}}')).rejects.toThrow(/.../);
  await expect(sdlOf('<html>')).rejects.toThrow('JSON');
});
