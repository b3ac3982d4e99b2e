import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { AnswerWatch, Patience } from './answer-watch.ts';

const idle = { taken: 0, isCallersTurn: false };

/** How many looks until it is over. */
function looksOf(patience: Patience, limitMs: number): number {
  let looks = 1;
  while (!patience.look(idle, limitMs)) looks += 1;
  return looks;
}

describe('patience', () => {
  test('ends when the time has passed, whenever the first look came', () => {
    expect(looksOf(new Patience(), 1000)).toBe(11);
    expect(looksOf(new Patience(), 1)).toBe(2);
    expect(looksOf(new Patience(), 250)).toBe(4);
  });

  test('begins anew with every piece of the answer', () => {
    const patience = new Patience();
    for (let look = 0; look < 10; look += 1) expect(patience.look(idle, 1000)).toBe(false);
    patience.renew();
    expect(looksOf(patience, 1000)).toBe(11);
  });

  test('begins anew when the service has taken some of the request, or it was the turn of the caller', () => {
    const patience = new Patience();
    for (let look = 1; look < 50; look += 1) expect(patience.look({ ...idle, taken: look }, 300)).toBe(false);
    for (let look = 1; look < 50; look += 1) expect(patience.look({ taken: 50, isCallersTurn: true }, 300)).toBe(false);
    const looks = Array.from({ length: 4 }, () => patience.look({ ...idle, taken: 50 }, 300));
    expect(looks).toEqual([false, false, true, true]);
  });
});

describe('the watch', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('looks at what is expected, and rests when there is nothing', () => {
    const watch = new AnswerWatch();
    const look = vi.fn<() => void>();
    const watched = watch.add({ look });
    vi.advanceTimersByTime(500);
    expect(look).toHaveBeenCalledTimes(5);
    watched.unlink();
    vi.advanceTimersByTime(500);
    expect(look).toHaveBeenCalledTimes(5);
    expect(vi.getTimerCount()).toBe(0);
    watch.add({ look });
    vi.advanceTimersByTime(100);
    expect(look).toHaveBeenCalledTimes(6);
  });
});
