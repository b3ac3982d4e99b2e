import { expect, test } from 'vitest';
import { parseSimulation } from './debian-packages.ts';

test('parseSimulation reads new packages and replaced ones, and nothing else', () => {
  const output = [
    'Reading package lists...',
    'The following NEW packages will be installed:',
    '  liblzf1 redis-server',
    'Inst libssl3 [3.0.15-1] (3.0.17-1 Debian:12.11/stable, Debian-Security:12/stable-security [amd64])',
    'Inst liblzf1 (3.6-3 Debian:12.11/stable [amd64])',
    'Inst redis-server (5:7.0.15-1~deb12u5 Debian:12.11/stable [amd64]) []',
    'Conf liblzf1 (3.6-3 Debian:12.11/stable [amd64])',
  ].join('\n');
  expect(parseSimulation(output)).toEqual([
    { name: 'libssl3', version: '3.0.17-1', installed: '3.0.15-1' },
    { name: 'liblzf1', version: '3.6-3', installed: undefined },
    { name: 'redis-server', version: '5:7.0.15-1~deb12u5', installed: undefined },
  ]);
});
