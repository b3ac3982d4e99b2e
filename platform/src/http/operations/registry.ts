import type { Operation } from './operation.ts';

/** What the registry does. */
export const registryOperations: readonly Operation[] = [
  {
    name: 'Find and watch services',
    scope: 'registrations:read',
    rest: [
      'GET /services',
      'GET /services/watch',
      'GET /services/:service_name',
      'GET /services/:service_name/instances',
      'GET /services/:service_name/instances/:instance_id',
    ],
    grpc: ['Get', 'List', 'ListInstances', 'Watch'],
    webSocket: ['registrations', 'instances'],
  },
  {
    name: 'Register, renew and unregister services',
    scope: 'registrations:write',
    rest: [
      'POST /services/register',
      'POST /services/:service_name/heartbeat',
      'DELETE /services/:service_name',
      'DELETE /services/:service_name/instances/:instance_id',
    ],
    grpc: ['Register', 'Heartbeat', 'Unregister'],
  },
  {
    // Whoever only reports need not be able to deploy.
    name: 'Report what a service says of itself',
    scope: 'registrations:write',
    rest: ['POST /webhooks/health', 'POST /webhooks/lifecycle'],
    grpc: ['ReportHealth', 'ReportLifecycle'],
  },
  {
    name: 'Tell how the schema of a service stands with the graph, as federation does',
    scope: 'registrations:write',
    rest: ['POST /services/:service_name/composition'],
  },
  {
    name: 'Read and watch delivery jobs',
    scope: 'jobs:read',
    rest: ['GET /jobs', 'GET /jobs/watch', 'GET /jobs/:job_id', 'GET /jobs/:job_id/events'],
    webSocket: ['jobs', 'jobs.{service_name}'],
  },
  {
    name: 'Read the history of updates, and check for newer versions',
    scope: 'jobs:read',
    rest: [
      'GET /updates/history',
      'GET /updates/history/:service_name',
      'GET /updates/history/:service_name/export/:format',
      'GET /updates/statistics',
      'POST /webhooks/check-updates',
    ],
  },
  {
    // The URLs of webhooks often hold what lets anybody call them.
    name: 'Read the configuration of webhooks and what was sent to them',
    scope: 'jobs:read',
    rest: ['GET /webhooks/config', 'GET /webhooks/deliveries', 'GET /webhooks/deliveries/:id'],
  },
  {
    // Who deploys runs programs.
    name: 'Deploy, roll back, promote, abort, record updates, configure webhooks and notify',
    scope: 'jobs:write',
    rest: [
      'POST /webhooks/update',
      'POST /webhooks/deploy',
      'POST /webhooks/rollback',
      'POST /webhooks/config',
      'POST /webhooks/notify',
      'POST /webhooks/deliveries/:id/replay',
      'POST /jobs/:job_id/promote',
      'POST /jobs/:job_id/abort',
    ],
  },
  { name: "Read the registry's metrics", scope: 'metrics:read', rest: ['GET /metrics'] },
  {
    name: 'Read health and documentation',
    scope: undefined,
    rest: ['GET /health', 'GET /openapi.json', 'GET /docs', 'GET /docs/*'],
  },
];
