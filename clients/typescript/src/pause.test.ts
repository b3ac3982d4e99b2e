import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { pause } from './pause.ts';

describe('pause', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('ends after its time', async () => {
    const ended = vi.fn<() => void>();
    const paused = pause(1000).then(ended);
    await vi.advanceTimersByTimeAsync(999);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    await paused;
  });

  it('ends when the signal aborts, and leaves no timer', async () => {
    const controller = new AbortController();
    const paused = pause(1000, { signal: controller.signal });
    controller.abort();
    await paused;
    expect(vi.getTimerCount()).toBe(0);
  });

  it('does not begin when the signal has aborted', async () => {
    await pause(1000, { signal: AbortSignal.abort() });
    expect(vi.getTimerCount()).toBe(0);
  });
});
