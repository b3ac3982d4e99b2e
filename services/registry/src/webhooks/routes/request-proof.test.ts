import { expect, test } from 'vitest';
import { canonicalPath } from './request-proof.ts';

test.each([
  ['/api/v1/webhooks/deploy', {}, '/api/v1/webhooks/deploy'],
  [
    '/api/v1/jobs/:job_id/promote',
    { job_id: 'deploy-shop-1.0.0-1790000000' },
    '/api/v1/jobs/deploy-shop-1.0.0-1790000000/promote',
  ],
  [
    '/api/v1/jobs/:job_id/abort',
    { job_id: 'deploy-größe-1/%{-1' },
    '/api/v1/jobs/deploy-gr%C3%B6%C3%9Fe-1%2F%25%7B-1/abort',
  ],
  ['/api/v1/webhooks/deliveries/:id/replay', { id: 'a b' }, '/api/v1/webhooks/deliveries/a%20b/replay'],
])('the path that is signed of %s with %j is %s', (route, params, path) => {
  expect(canonicalPath(route, params)).toBe(path);
});
