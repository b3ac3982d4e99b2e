import { expect, test } from 'vitest';
import { addressRules } from './address-rules.ts';

test.each([
  { address: '8.8.8.8', allowedBy: ['public', 'cluster', 'any'] },
  { address: '2001:4860:4860::8888', allowedBy: ['public', 'cluster', 'any'] },
  { address: '64:ff9b::8.8.8.8', allowedBy: ['public', 'cluster', 'any'] },
  { address: '10.96.0.10', allowedBy: ['cluster', 'any'] },
  { address: '172.17.0.2', allowedBy: ['cluster', 'any'] },
  { address: '192.168.1.1', allowedBy: ['cluster', 'any'] },
  { address: '100.64.3.4', allowedBy: ['cluster', 'any'] },
  { address: 'fd12:3456::1', allowedBy: ['cluster', 'any'] },
  { address: '::ffff:10.0.0.1', allowedBy: ['cluster', 'any'] },
  { address: '127.0.0.1', allowedBy: ['loopback', 'any'] },
  { address: '127.9.8.7', allowedBy: ['loopback', 'any'] },
  { address: '64:ff9b::127.0.0.1', allowedBy: ['any'] },
  { address: '::1', allowedBy: ['loopback', 'any'] },
  { address: '::ffff:127.0.0.1', allowedBy: ['loopback', 'any'] },
  { address: '0.0.0.0', allowedBy: ['any'] },
  { address: '::', allowedBy: ['any'] },
  { address: '169.254.169.254', allowedBy: ['any'] },
  { address: '64:ff9b::169.254.169.254', allowedBy: ['any'] },
  { address: 'fe80::1', allowedBy: ['any'] },
  { address: 'fd00:ec2::254', allowedBy: ['any'] },
  { address: '224.0.0.1', allowedBy: ['any'] },
  { address: 'ff02::1', allowedBy: ['any'] },
])('$address is allowed by $allowedBy', ({ address, allowedBy }) => {
  const rules = Object.entries(addressRules);
  expect(rules.flatMap(([name, mayConnect]) => (mayConnect(address) ? [name] : []))).toEqual(allowedBy);
});
