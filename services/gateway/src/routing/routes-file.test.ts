import { expect, test } from 'vitest';
import { parseRoutes } from './routes-file.ts';

test('a file of routes', () => {
  const text = `
routes:
  - name: reports
    prefix: /api/v1/reports/
    service: reporting
    upstreamPrefix: /v2
    scopes: [reports:read]
    methods: [GET]
    requestsPerMinute: { free: 2 }
    timeoutSeconds: 1.5
  - name: open
    prefix: /public
    service: site
    anonymous: true
`;
  expect(parseRoutes(text)).toEqual([
    {
      prefix: '/api/v1/reports',
      service: 'reporting',
      upstreamPrefix: '/v2',
      scopes: ['reports:read'],
      methods: ['GET'],
      anonymous: false,
      limits: { route: 'reports', limits: { free: { requests: 2, windowMs: 60_000 } } },
      timeoutMs: 1500,
    },
    expect.objectContaining({
      prefix: '/public',
      upstreamPrefix: '/public',
      anonymous: true,
      scopes: [],
      limits: undefined,
    }),
  ]);
});

test.each([
  { name: 'what is no YAML', text: 'routes: [', says: /./ },
  { name: 'no routes', text: '{}', says: /not valid/ },
  { name: 'an unknown field', text: 'routes: [{name: a, prefix: /a, service: s, scope: x}]', says: /not valid/ },
  { name: 'a prefix with a query', text: 'routes: [{name: a, prefix: "/a?b", service: s}]', says: /prefix/ },
  {
    name: 'a name twice',
    text: 'routes: [{name: a, prefix: /a, service: s}, {name: a, prefix: /b, service: s}]',
    says: /two have the name a/,
  },
])('refuses $name', ({ text, says }) => {
  expect(() => parseRoutes(text)).toThrow(says);
});
