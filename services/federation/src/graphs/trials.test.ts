import { expect, test, vi } from 'vitest';
import { LIMIT_CODE } from '../composition/compose.ts';
import { ProcessLostError } from '../execution/planner.ts';
import { createTrials } from './trials.ts';

const SOURCES = [{ name: 'shop', url: 'http://shop/', sdl: '' }];

/** @param build of a supergraph, or why not. */
function trialsOf(build: (supergraph: string) => void = () => undefined) {
  const state = { supergraph: 'first', isStopped: false };
  const closed: string[] = [];
  const built: string[] = [];
  const trials = createTrials({
    compose: async () => ({ supergraph: state.supergraph }),
    async build(supergraph) {
      build(supergraph);
      built.push(supergraph);
      return { supergraph, close: () => void closed.push(supergraph) };
    },
    isStopped: () => state.isStopped,
  });
  return { state, closed, built, trials };
}

test('what was built to see whether it can be is put in force, and not built again', async () => {
  const { trials, built, closed } = trialsOf();
  expect(await trials.compose(SOURCES)).toEqual({ supergraph: 'first' });
  expect((await trials.build('first')).supergraph).toBe('first');
  await trials.compose(SOURCES);
  expect([built, closed]).toEqual([['first'], []]);
  await trials.build('first');
  expect(built).toEqual(['first', 'first']);
});

test('what is not put in force is closed, by the next one or after a while', async () => {
  vi.useFakeTimers();
  try {
    const { trials, state, closed, built } = trialsOf();
    await trials.compose(SOURCES);
    state.supergraph = 'second';
    await trials.compose(SOURCES);
    expect(closed).toEqual(['first']);
    vi.advanceTimersByTime(10_000);
    expect(closed).toEqual(['first', 'second']);
    await trials.build('second');
    expect(built).toEqual(['first', 'second', 'second']);
  } finally {
    vi.useRealTimers();
  }
});

test.each([
  [new Error('a type is missing'), 'GRAPH_UNUSABLE'],
  [new ProcessLostError('the process has ended'), LIMIT_CODE],
])('what cannot be built does not compose: %s', async (error, code) => {
  let isBroken = true;
  const { trials, state } = trialsOf(() => {
    if (isBroken) throw error;
  });
  const errors = [{ code, message: `No graph of it: ${error.message}` }];
  expect(await trials.compose(SOURCES)).toEqual({ errors });
  isBroken = false;
  expect(await trials.compose(SOURCES)).toEqual({ supergraph: 'first' });
  state.isStopped = true;
  isBroken = true;
  state.supergraph = 'second';
  await expect(trials.compose(SOURCES)).rejects.toBe(error);
});
