import { systemClock } from '@rollcall/platform/clock.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import { createCurrent } from './current.ts';

/** Follows a graph in memory, until the test is over. @param build of the graph of a number, or why not. */
async function follow(build: (supergraph: string) => Promise<string>) {
  const store = { number: 1, isThere: true };
  const current = createCurrent({
    store: {
      position: async () => ({ revision: store.number, generation: store.number }),
      generation: async () =>
        store.isThere ? { number: store.number, supergraph: `graph ${store.number}`, hash: '' } : undefined,
      statuses: async () => new Map(),
    },
    build: async (supergraph) => ({ name: await build(supergraph), close: () => undefined }),
    file: undefined,
    onSwap: () => undefined,
    clock: systemClock,
    log: createLogger('test', 'silent'),
    metrics: new Registry(),
  });
  await current.start?.();
  onTestFinished(() => current.stop());
  return { store, name: () => current.graph()?.graph.name, adopt: current.adopt };
}

test('a graph that could not be built is tried again, and the one before goes on meanwhile', async () => {
  let failures = 2;
  const { store, name, adopt } = await follow(async (supergraph) => {
    if (supergraph === 'graph 2' && failures > 0) {
      failures -= 1;
      throw new Error('The process of planners was lost');
    }
    return supergraph;
  });
  expect(name()).toBe('graph 1');
  store.number = 2;
  await adopt();
  expect([name(), failures]).toEqual(['graph 1', 1]);
  await expect.poll(name).toBe('graph 2');
});

test('a newer graph does not wait for one that could not be built', async () => {
  const { store, name, adopt } = await follow(async (supergraph) => {
    if (supergraph === 'graph 2') throw new Error('It cannot be planned for');
    return supergraph;
  });
  store.number = 2;
  await adopt();
  store.number = 3;
  await adopt();
  expect(name()).toBe('graph 3');
});

test('a graph that is not there takes nothing away', async () => {
  const { store, name, adopt } = await follow(async (supergraph) => supergraph);
  Object.assign(store, { number: 2, isThere: false });
  await expect(adopt()).rejects.toThrow('The graph 2 is not there');
  expect(name()).toBe('graph 1');
});
