import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { AnswerWatch, Patience } from './answer-watch.ts';

const idle = { sentBytes: 0, isCallersTurn: false };

/** How many checks until it is over. */
function checksOf(patience: Patience, limitMs: number): number {
  let checks = 1;
  while (!patience.check(idle, limitMs)) checks += 1;
  return checks;
}

describe('patience', () => {
  test('ends when the time has passed, whenever the first check came', () => {
    expect(checksOf(new Patience(), 1000)).toBe(11);
    expect(checksOf(new Patience(), 1)).toBe(2);
    expect(checksOf(new Patience(), 250)).toBe(4);
  });

  test('begins anew with every piece of the answer', () => {
    const patience = new Patience();
    for (let check = 0; check < 10; check += 1) expect(patience.check(idle, 1000)).toBe(false);
    patience.renew();
    expect(checksOf(patience, 1000)).toBe(11);
  });

  test('begins anew when the service has sentBytes some of the request, or it was the turn of the caller', () => {
    const patience = new Patience();
    for (let check = 1; check < 50; check += 1) expect(patience.check({ ...idle, sentBytes: check }, 300)).toBe(false);
    for (let check = 1; check < 50; check += 1)
      expect(patience.check({ sentBytes: 50, isCallersTurn: true }, 300)).toBe(false);
    const checks = Array.from({ length: 4 }, () => patience.check({ ...idle, sentBytes: 50 }, 300));
    expect(checks).toEqual([false, false, true, true]);
  });
});

describe('the watch', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('checks what is expected, and rests when there is nothing', () => {
    const watch = new AnswerWatch();
    const check = vi.fn<() => void>();
    const watched = watch.add({ check });
    vi.advanceTimersByTime(500);
    expect(check).toHaveBeenCalledTimes(5);
    watched.unlink();
    vi.advanceTimersByTime(500);
    expect(check).toHaveBeenCalledTimes(5);
    expect(vi.getTimerCount()).toBe(0);
    watch.add({ check });
    vi.advanceTimersByTime(100);
    expect(check).toHaveBeenCalledTimes(6);
  });
});
