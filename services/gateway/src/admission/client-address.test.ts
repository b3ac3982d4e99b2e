import { describe, expect, test } from 'vitest';
import { clientAddress, networkOf, parseTrustedProxies } from './client-address.ts';

const trusted = parseTrustedProxies(['10.0.0.0/8', '192.0.2.7', 'fd00::/8']);

describe('clientAddress', () => {
  test.each<[what: string, remote: string, forwardedFor: string | string[] | undefined, expected: string]>([
    ['the connection, where there is no proxy', '203.0.113.5', undefined, '203.0.113.5'],
    ['the connection, where its other end is no proxy of ours', '203.0.113.5', '1.2.3.4', '203.0.113.5'],
    ['whom a proxy names', '10.1.2.3', '203.0.113.5', '203.0.113.5'],
    [
      'the last that is not trusted, not what the client wrote before',
      '10.1.2.3',
      '8.8.8.8, 203.0.113.5',
      '203.0.113.5',
    ],
    ['the one before all trusted proxies', '10.1.2.3', '8.8.8.8,203.0.113.5 , 10.9.9.9,192.0.2.7', '203.0.113.5'],
    ['the farthest, where all are trusted', '10.1.2.3', '10.0.0.1, 10.0.0.2', '10.0.0.1'],
    ['the proxy itself, where it names nobody', '10.1.2.3', '', '10.1.2.3'],
    ['the proxy that wrote nonsense', '10.1.2.3', '203.0.113.5, unknown', '10.1.2.3'],
    ['the proxy that wrote an empty entry', '10.1.2.3', '203.0.113.5, ', '10.1.2.3'],
    ['the proxy before the one that wrote nonsense', '10.1.2.3', 'nonsense, 10.0.0.9', '10.0.0.9'],
    ['several headers, as one', '10.1.2.3', ['8.8.8.8', '203.0.113.5, 10.0.0.1'], '203.0.113.5'],
    ['an address with a port', '10.1.2.3', '203.0.113.5:4711', '203.0.113.5'],
    ['a mapped address of the connection', '::ffff:10.1.2.3', '203.0.113.5', '203.0.113.5'],
    ['a mapped address in the header', '10.1.2.3', '::ffff:203.0.113.5', '203.0.113.5'],
    ['a mapped address in hexadecimal', '10.1.2.3', '::FFFF:cb00:7105', '203.0.113.5'],
    ['an IPv6 address in full', 'fd00::1', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2:3:4:5:6'],
    ['an IPv6 address in another spelling', 'fd00::1', '[2001:0DB8:1:2:0::9]:443', '2001:db8:1:2::9'],
    ['a neighbour of the proxy', 'fd00::1', 'fd00::2, 2001:db8::1', '2001:db8::1'],
    ['an address with a zone', 'fe80::1%eth0', undefined, 'fe80::1'],
  ])('is %s', (_what, ...[remoteAddress, forwardedFor, expected]) => {
    expect(clientAddress(remoteAddress, forwardedFor, trusted)).toBe(expected);
  });

  test('is the connection for everybody where no proxy is trusted', () => {
    expect(clientAddress('10.1.2.3', '203.0.113.5', parseTrustedProxies([]))).toBe('10.1.2.3');
  });

  test('takes no time over a header full of our proxies, or of nonsense', () => {
    // Longer than headers may be: what takes the square of its length takes minutes.
    const proxies = Array.from({ length: 100_000 }, () => '10.0.0.1').join(',');
    const startedAt = performance.now();
    expect(clientAddress('10.1.2.3', `203.0.113.5,${proxies}`, trusted)).toBe('203.0.113.5');
    for (const nonsense of [',', ':', '[', ' ']) {
      expect(clientAddress('10.1.2.3', nonsense.repeat(900_000), trusted)).toBe('10.1.2.3');
    }
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  });
});

describe('networkOf', () => {
  test.each<[what: string, remote: string, forwardedFor: string | undefined, expected: string]>([
    ['an IPv4 address', '10.1.2.3', '203.0.113.5', '203.0.113.5'],
    ['a mapped address', '::ffff:10.1.2.3', undefined, '10.1.2.3'],
    ['the network of an IPv6 address', 'fd00::1', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['the same network in another spelling', 'fd00::1', '[2001:0DB8:1:2::9]:443', '2001:db8:1:2::/64'],
    ['a network with zeros', '2001:db8::5', undefined, '2001:db8:0:0::/64'],
    ['a network with zeros in the middle', '2001:db8:0:1::5', undefined, '2001:db8:0:1::/64'],
    ['an address with a zone', 'fe80::1%eth0', undefined, 'fe80:0:0:0::/64'],
    ['loopback', '::1', undefined, '0:0:0:0::/64'],
  ])('is %s', (_what, ...[remoteAddress, forwardedFor, expected]) => {
    expect(networkOf(clientAddress(remoteAddress, forwardedFor, trusted))).toBe(expected);
  });
});

describe('parseTrustedProxies', () => {
  test.each([
    '10.0.0.0/33',
    'fd00::/129',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0.0/-1',
    'proxy.example',
    '',
    'fe80::1%eth0',
  ])('refuses %j', (range) => {
    expect(() => parseTrustedProxies(['10.0.0.0/8', range])).toThrow(TypeError);
  });
});
