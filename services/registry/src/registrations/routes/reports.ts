import { parseDateTime } from '@rollcall/platform/date-time.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import type { Static } from 'typebox';
import { RegistryError } from '../../common/errors.ts';
import type { ServiceReport } from '../domain/registration.ts';
import { type RegistrationsDeps, reportService } from '../domain/registrations.ts';
import { HealthBody, LifecycleBody, ReceivedResponse } from './report-schemas.ts';

const tags = ['webhooks'];
const response = { 200: ReceivedResponse };
const refusals = [
  'INVALID_SERVICE_NAME',
  'SERVICE_NOT_FOUND',
  'NAME_OWNED_BY_ANOTHER',
  'OVERLOADED',
  'CONTENTION',
] as const;

interface Reported {
  readonly subject: string | undefined;
  readonly body: Pick<Static<typeof HealthBody>, 'service_name' | 'timestamp' | 'details'>;
}

/** Contract 1, what services say of themselves. */
export function reportRoutes(app: App, { registrations }: { readonly registrations: RegistrationsDeps }): void {
  async function keep({ subject, body }: Reported, kind: ServiceReport['kind'], word: string) {
    const { service_name, timestamp, details = {} } = body;
    const at = timestamp === undefined ? registrations.clock.now() : parseTime(timestamp);
    await reportService(registrations, { serviceName: service_name, subject, report: { kind, word, at, details } });
    const what = kind === 'health' ? 'Health' : 'Lifecycle event';
    return { status: 'received' as const, message: `${what} of '${service_name}' received: ${word}` };
  }

  app.post(
    '/webhooks/health',
    { config: { refusals }, schema: { tags, summary: 'Health status from a service', body: HealthBody, response } },
    (request) => keep(request, 'health', request.body.status),
  );
  app.post(
    '/webhooks/lifecycle',
    { config: { refusals }, schema: { tags, summary: 'Lifecycle event of a service', body: LifecycleBody, response } },
    (request) => keep(request, 'lifecycle', request.body.event),
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
