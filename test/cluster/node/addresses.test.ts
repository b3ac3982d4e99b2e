import { BlockList } from 'node:net';
import { expect, test } from 'vitest';
import { GUARDED_RANGES, MAX_NODES, nodeAddresses } from './addresses.ts';

const all = Array.from({ length: MAX_NODES }, (_, id) => nodeAddresses(id));

function blockOf(ranges: readonly string[]): BlockList {
  const block = new BlockList();
  for (const range of ranges) {
    const [address = '', bits = ''] = range.split('/');
    block.addSubnet(address, Number(bits));
  }
  return block;
}

test('every address of every node is in a range that is guarded', () => {
  const guarded = blockOf(GUARDED_RANGES);
  const used = all.flatMap(({ host, node, apiServer, dns, podRange, serviceRange }) => [
    host,
    node,
    apiServer,
    dns,
    podRange.replace(/\/.*/, ''),
    serviceRange.replace(/\/.*/, ''),
  ]);
  expect(used.filter((address) => !guarded.check(address))).toEqual([]);
});

test('no two nodes have an address in common', () => {
  for (const own of all) {
    const ranges = blockOf([`${own.host}/30`, own.podRange, own.serviceRange]);
    const others = all.filter(({ id }) => id !== own.id);
    const taken = others.flatMap(({ node, podRange, apiServer }) => [node, podRange.replace('.0/24', '.1'), apiServer]);
    expect(taken.filter((address) => ranges.check(address))).toEqual([]);
    expect([own.node, own.apiServer, own.dns].filter((address) => !ranges.check(address))).toEqual([]);
  }
});
