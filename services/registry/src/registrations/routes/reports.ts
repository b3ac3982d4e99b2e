import type { Clock } from '@rollcall/platform/clock.ts';
import { parseDateTime } from '@rollcall/platform/date-time.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import { RegistryError } from '../../common/errors.ts';
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

/** Contract 1, what services say of themselves. */
export function reportRoutes(app: App, { registrations }: { readonly registrations: RegistrationsDeps }): void {
  const { clock } = registrations;
  app.post(
    '/webhooks/health',
    { config: { refusals }, schema: { tags, summary: 'Health status from a service', body: HealthBody, response } },
    async (request) => {
      const { service_name, status, timestamp, details = {} } = request.body;
      await reportService(registrations, {
        serviceName: service_name,
        subject: request.subject,
        report: { kind: 'health', status, at: parseTime(timestamp, clock), details },
      });
      return { status: 'received' as const, message: `Health of '${service_name}' received: ${status}` };
    },
  );
  app.post(
    '/webhooks/lifecycle',
    { config: { refusals }, schema: { tags, summary: 'Lifecycle event of a service', body: LifecycleBody, response } },
    async (request) => {
      const { service_name, event, timestamp, details = {} } = request.body;
      await reportService(registrations, {
        serviceName: service_name,
        subject: request.subject,
        report: { kind: 'lifecycle', event, at: parseTime(timestamp, clock), details },
      });
      return { status: 'received' as const, message: `Lifecycle event of '${service_name}' received: ${event}` };
    },
  );
}

function parseTime(text: string | undefined, clock: Clock): Date {
  if (text === undefined) return clock.now();
  const at = parseDateTime(text);
  if (at !== undefined) return at;
  throw new RegistryError(
    'INVALID_REQUEST',
    'timestamp must be a date and time of RFC 3339 with seconds and an offset, such as 2026-11-25T08:00:00Z',
  );
}
