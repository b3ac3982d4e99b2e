import { parseDateTime } from '@rollcall/platform/date-time.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import { RegistryError } from '../../common/errors.ts';
import { reportComposition } from '../domain/compositions.ts';
import type { ServiceReport } from '../domain/registration.ts';
import { type RegistrationsDeps, reportService } from '../domain/registrations.ts';
import { instanceIdOf } from './instance-id.ts';
import { InstanceHeaders, ServiceParams } from './registration-schemas.ts';
import { CompositionBody, HealthBody, LifecycleBody, ReceivedResponse } from './report-schemas.ts';

const tags = ['webhooks'];
const response = { 200: ReceivedResponse };
const refusals = [
  'INVALID_SERVICE_NAME',
  'INVALID_INSTANCE_ID',
  'SERVICE_NOT_FOUND',
  'NAME_OWNED_BY_ANOTHER',
  'OVERLOADED',
  'CONTENTION',
] as const;

interface Reported extends Pick<FastifyRequest, 'headers'> {
  readonly subject?: string | undefined;
  readonly body: Pick<Static<typeof HealthBody>, 'service_name' | 'instance_id' | 'timestamp' | 'details'>;
}

/** Contract 1, what services say of themselves. */
export function reportRoutes(app: App, { registrations }: { readonly registrations: RegistrationsDeps }): void {
  async function keep(request: Reported, kind: ServiceReport['kind'], word: string) {
    const { subject, body } = request;
    const { service_name, timestamp, details = {} } = body;
    const instanceId = instanceIdOf(request, body.instance_id);
    const at = timestamp === undefined ? registrations.clock.now() : parseTime(timestamp);
    const report = { kind, word, at, details };
    await reportService(registrations, { serviceName: service_name, instanceId, subject, report });
    const what = kind === 'health' ? 'Health' : 'Lifecycle event';
    return { status: 'received' as const, message: `${what} of '${service_name}' received: ${word}` };
  }

  app.post(
    '/webhooks/health',
    {
      config: { refusals },
      schema: { tags, summary: 'Health status from a service', headers: InstanceHeaders, body: HealthBody, response },
    },
    (request) => keep(request, 'health', request.body.status),
  );
  app.post(
    '/webhooks/lifecycle',
    {
      config: { refusals },
      schema: {
        tags,
        summary: 'Lifecycle event of a service',
        headers: InstanceHeaders,
        body: LifecycleBody,
        response,
      },
    },
    (request) => keep(request, 'lifecycle', request.body.event),
  );
  app.post(
    '/services/:service_name/composition',
    {
      config: { refusals: ['INVALID_SERVICE_NAME', 'SERVICE_NOT_FOUND', 'NAME_OWNED_BY_ANOTHER', 'OVERLOADED'] },
      schema: {
        tags: ['services'],
        summary: 'How the schema of a service stands with the graph, as federation tells it',
        params: ServiceParams,
        body: CompositionBody,
        response,
      },
    },
    async ({ subject, params: { service_name: serviceName }, body }) => {
      await reportComposition(registrations.store, { ...body, serviceName, subject });
      return { status: 'received' as const, message: `Composition of '${serviceName}' received: ${body.status}` };
    },
  );
}

function parseTime(text: string): Date {
  const at = parseDateTime(text);
  if (at !== undefined) return at;
  throw new RegistryError(
    'INVALID_REQUEST',
    'timestamp must be a date and time of RFC 3339 with seconds and an offset, such as 2026-11-25T08:00:00Z',
  );
}
