import { documented } from '@rollcall/platform/http/documented.ts';
import { describeApi } from '@rollcall/platform/http/open-api.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import { type ErrorCode, errorCatalogue } from '../common/errors.ts';
import { components, named } from './schemas.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the route refuses or cannot do beside what any route does, for the OpenAPI document. */
    refusals?: readonly ErrorCode[];
  }
}

/** What any route refuses that asks who calls, and by which way. */
const CREDENTIALS: readonly ErrorCode[] = [
  'INVALID_REQUEST',
  'UNAUTHENTICATED',
  'ADMITTED_FOR_ANOTHER',
  'INSUFFICIENT_SCOPE',
  'STORE_UNAVAILABLE',
  'GATEWAY_KEYS_UNAVAILABLE',
];

/** The registry's OpenAPI document and its page. Registered before the routes, so that it sees them. */
export async function documentation(app: App, version: string): Promise<void> {
  await describeApi(app, {
    title: 'Rollcall registry',
    version,
    description: 'Service registration, discovery, update history and delivery webhooks.',
    tags: [
      { name: 'services', description: 'Registration, discovery, heartbeats' },
      { name: 'updates', description: 'Update history, statistics and export' },
      { name: 'webhooks', description: 'Calls from pipelines and services' },
      { name: 'jobs', description: 'Delivery jobs' },
      { name: 'health', description: 'The registry itself' },
    ],
    schemas: components,
    bearer: 'The token of a service account; at the gateway that of one of its clients',
    isOpen: ({ config }) => config?.access === 'public',
    mayBeOpen: true,
    refusals: ({ config }) => {
      const { access, refusals = [] } = config ?? {};
      return [...(access === 'public' ? [] : CREDENTIALS), ...refusals].map((code) => errorCatalogue[code]);
    },
    refusal: documented(named('Error')),
  });
}

/** `/api/v1/openapi.json`. */
export function openApiRoute(app: App): void {
  app.get('/openapi.json', { schema: { hide: true }, config: { access: 'public' }, compress: {} }, () => app.swagger());
}
