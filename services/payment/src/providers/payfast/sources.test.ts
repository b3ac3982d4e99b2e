import { expect, test } from 'vitest';
import { createSourceCheck } from './sources.ts';

const nowhere = () => Promise.reject(new Error('no such name'));

test.each(['197.97.145.144', '197.97.145.159', '41.74.179.200', '102.216.36.143', '::ffff:197.97.145.150'])(
  '%s is one that PayFast publishes',
  async (address) => {
    expect(await createSourceCheck([], nowhere)(address)).toBe(true);
  },
);

test.each(['197.97.145.160', '127.0.0.1', '::1', 'payfast.co.za', '', undefined])('%s is not', async (address) => {
  expect(await createSourceCheck([], nowhere)(address)).toBe(false);
});

test('the addresses that the names of PayFast have now are its own', async () => {
  const check = createSourceCheck([], async (host) =>
    host === 'w1w.payfast.co.za' ? [{ address: '3.5.7.9', family: 4 }] : nowhere(),
  );
  expect(await Promise.all([check('3.5.7.9'), check('3.5.7.8')])).toEqual([true, false]);
});

test('so are those of the settings', async () => {
  const check = createSourceCheck(['127.0.0.1', '10.1.0.0/16', 'fd00::/8'], nowhere);
  expect(await Promise.all(['127.0.0.1', '10.1.2.3', 'fd00::1', '10.2.0.1'].map(check))).toEqual([
    true,
    true,
    true,
    false,
  ]);
});

test.each(['payfast.co.za', '10.0.0.0/x', '300.1.1.1'])('%s in the settings is a fault', (source) => {
  expect(() => createSourceCheck([source], nowhere)).toThrow('neither an address nor a network');
});
