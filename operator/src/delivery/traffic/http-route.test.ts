import type { HttpRoute } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import { buildRoute, buildService } from '../testing/builders.ts';
import { backendsOf, withoutCanaries, withWeight } from './http-route.ts';

type Rules = NonNullable<HttpRoute['spec']['rules']>;
type Backends = NonNullable<Rules[number]['backendRefs']>;

const shop = { namespace: 'default', names: new Set(['shop']) };
const weigh = (backendRefs: Backends, weight: number) =>
  withWeight([{ backendRefs }], shop, weight)[0]?.backendRefs?.map(({ name, weight }) => `${name} ${weight}`);

test.for<[string, Backends, number, string[]]>([
  ['alone', [{ name: 'shop' }], 10, ['shop 9', 'shop-canary 1']],
  ['nothing yet', [{ name: 'shop' }], 0, ['shop 1', 'shop-canary 0']],
  ['everything', [{ name: 'shop' }], 100, ['shop 0', 'shop-canary 1']],
  ['half', [{ name: 'shop', weight: 8 }], 50, ['shop 1', 'shop-canary 1']],
  ['a third', [{ name: 'shop' }], 33, ['shop 67', 'shop-canary 33']],
  // 3 : 1 stays 75 % : 25 %.
  ['beside another', [{ name: 'shop', weight: 3 }, { name: 'other' }], 20, ['shop 12', 'shop-canary 3', 'other 5']],
  [
    'beside one that is off',
    [
      { name: 'shop', weight: 0 },
      { name: 'other', weight: 7 },
    ],
    20,
    ['shop 0', 'shop-canary 0', 'other 1'],
  ],
  [
    'beside another of its name',
    [{ name: 'shop' }, { name: 'shop', namespace: 'x' }],
    0,
    ['shop 1', 'shop-canary 0', 'shop 1'],
  ],
])('weights: %s', ([, backends, weight, expected]) => {
  expect(weigh(backends, weight)).toEqual(expected);
});

test('weights that have no common divisor are rounded to what Gateway API allows', () => {
  const backends = [
    { name: 'shop', weight: 999_983 },
    { name: 'other', weight: 999_979 },
  ];
  const weights =
    withWeight([{ backendRefs: backends }], shop, 1)[0]?.backendRefs?.map(({ weight = 1 }) => weight) ?? [];
  expect(Math.max(...weights)).toBeLessThanOrEqual(1_000_000);
  const share = (weights[1] ?? 0) / weights.reduce((sum, weight) => sum + weight, 0);
  expect(share).toBeCloseTo((999_983 * 0.01) / (999_983 + 999_979), 5);
});

test('everything else of a rule stays, and so do rules that lead elsewhere', () => {
  const rules: Rules = [
    {
      matches: [{ path: { value: '/' } }],
      filters: [{ type: 'URLRewrite' }],
      backendRefs: [{ name: 'shop', port: 80, filters: [{ type: 'X' }] }],
    },
    { backendRefs: [{ name: 'other', weight: 4 }] },
    { filters: [{ type: 'RequestRedirect' }] },
    { backendRefs: [{ name: 'shop', kind: 'ServiceImport', group: 'multicluster.x-k8s.io' }] },
  ];
  expect(withWeight(rules, shop, 50)).toEqual([
    {
      matches: [{ path: { value: '/' } }],
      filters: [{ type: 'URLRewrite' }],
      backendRefs: [
        { name: 'shop', port: 80, filters: [{ type: 'X' }], weight: 1 },
        { name: 'shop-canary', port: 80, filters: [{ type: 'X' }], weight: 1 },
      ],
    },
    ...rules.slice(1),
  ]);
});

test('the Services that a route points at, and a route without their canaries', () => {
  const route = buildRoute([
    { backendRefs: [{ name: 'shop', weight: 9 }, { name: 'shop-canary', weight: 1 }, { name: 'other' }] },
  ]);
  expect(backendsOf(route, new Set(['shop', 'cart']))).toEqual(['shop']);
  expect(withoutCanaries([route], [buildService()], () => false)).toEqual([
    { name: 'shop', rules: [{ backendRefs: [{ name: 'shop', weight: 10 }, { name: 'other' }] }] },
  ]);
  expect(withoutCanaries([buildRoute([{ backendRefs: [{ name: 'other' }] }])], [buildService()], () => false)).toEqual(
    [],
  );
});
