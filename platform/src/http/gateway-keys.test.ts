import { expect, onTestFinished, test } from 'vitest';
import { keysLoader } from './gateway-keys.ts';

/** Keys that are had when the test says so, at the latest attempt. */
function startKeys() {
  const keys = { isThere: false, attempts: 0 };
  const load = async (): Promise<void> => {
    keys.attempts += 1;
    if (!keys.isThere) throw new Error('The key set cannot be had');
  };
  return { keys, load };
}

test('a replica is ready once the keys are there', async () => {
  const { keys, load } = startKeys();
  const loader = keysLoader({ load }, 600_000);
  onTestFinished(() => loader.stop());
  let isReady = false;
  const started = loader.start().then(() => (isReady = true));
  await expect.poll(() => keys.attempts).toBeGreaterThan(1);
  expect(isReady).toBe(false);
  keys.isThere = true;
  await started;
  const { attempts } = keys;
  await loader.stop();
  expect(keys.attempts).toBe(attempts);
});

test('a replica is ready without keys in time, and goes on trying until it stops', async () => {
  const { keys, load } = startKeys();
  const loader = keysLoader({ load }, 1);
  await loader.start();
  const { attempts } = keys;
  await expect.poll(() => keys.attempts).toBeGreaterThan(attempts);
  await loader.stop();
});

test('a replica that is stopped waits for no keys', async () => {
  const { keys, load } = startKeys();
  const loader = keysLoader({ load }, 600_000);
  const started = loader.start();
  await loader.stop();
  await started;
  expect(keys.isThere).toBe(false);
});
