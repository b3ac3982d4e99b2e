import { expect, test } from 'vitest';
import { defaultInstanceId } from './instance-id.ts';

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const inPod = { KUBERNETES_SERVICE_HOST: '10.96.0.1' };

test.each([
  ['in a pod, its name', inPod, 'shop-7d9c5b-x2k4p', 'shop-7d9c5b-x2k4p'],
  ['in a pod that says otherwise, that', { ...inPod, POD_NAME: 'shop-0' }, 'node-1', 'shop-0'],
  ['in a pod with a name of several labels, all of them', inPod, 'shop.0', 'shop-0'],
])('%s', (...[, env, host, id]) => {
  expect(defaultInstanceId(env, host)).toBe(id);
});

test.each(['laptop', 'Laptop.LAN', '', '---', 'a'.repeat(63), `${'a'.repeat(53)}.b`, 'ä'])(
  'on the host %j, a label that is another one each time',
  (host) => {
    const [one, other] = [defaultInstanceId({}, host), defaultInstanceId({}, host)];
    expect(one).toMatch(LABEL);
    expect(one).not.toBe(other);
  },
);

test('in a pod whose name is too long for a label, one that begins like it', () => {
  expect(defaultInstanceId(inPod, 'a'.repeat(80))).toMatch(/^a{54}-[0-9a-f]{8}$/);
});
