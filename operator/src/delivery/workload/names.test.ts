import { expect, test } from 'vitest';
import { canaryServiceName, extraDeploymentName, extraDeploymentNames } from './names.ts';

test('extra Deployments are named after the strategy', () => {
  expect(extraDeploymentNames('shop')).toEqual(['shop-green', 'shop-canary']);
  expect(canaryServiceName('shop')).toBe('shop-canary');
});

test('long names stay short enough for the host names of pods, and apart', () => {
  const [a, b] = [`${'a'.repeat(60)}-x`, `${'a'.repeat(60)}-y`].map((name) => extraDeploymentName(name, 'Canary'));
  expect(a).not.toBe(b);
  expect(a).toMatch(/^[a-z0-9-]+-canary$/);
  expect(`${a}-1234567890-12345`.length).toBeLessThanOrEqual(63);
  expect(canaryServiceName('s'.repeat(63)).length).toBeLessThanOrEqual(63);
});
