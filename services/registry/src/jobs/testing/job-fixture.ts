import type { Job } from '../domain/jobs.ts';

/**
 * A job for tests: a deployment that has just been recorded as succeeded, but for what the test
 * says.
 */
export function someJob(fields: Partial<Job>): Job {
  return {
    uid: 'uid',
    id: 'deploy-shop-1.1.0-1',
    name: 'deploy-shop-1.1.0-1',
    operation: 'Deploy',
    serviceName: 'shop',
    version: '1.1.0',
    artifact: { url: 'shop:1.1.0', type: 'image', checksum: undefined },
    strategy: undefined,
    requestedBy: 'webhook',
    createdAt: new Date('2026-11-20T10:59:00Z'),
    oldVersion: '1.0.0',
    startedAt: new Date('2026-11-20T11:00:00Z'),
    finishedAt: new Date('2026-11-20T11:00:42.500Z'),
    checks: [],
    milestones: [],
    aborted: false,
    promoted: false,
    promoteUsed: false,
    deleted: false,
    held: true,
    attended: false,
    revision: 1,
    ...fields,
  };
}
