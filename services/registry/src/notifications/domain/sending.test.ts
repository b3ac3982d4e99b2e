import { expect, test } from 'vitest';
import { attemptOf } from './sending.ts';

test.each([
  { result: 'delivered', statuses: [200, 201, 202, 204, 299] },
  { result: 'refused', statuses: [400, 401, 403, 404, 410, 422] },
  { result: 'failed', statuses: [301, 302, 304, 408, 429, 500, 502, 503, 504] },
])('the answers $statuses are $result', ({ result, statuses }) => {
  for (const status of statuses) expect(attemptOf(status).result).toBe(result);
});
