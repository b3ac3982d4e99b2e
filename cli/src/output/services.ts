import type { InstanceRecord, ServiceRecord } from '@rollcall/client/registry-types.ts';
import { formatAge } from './age.ts';
import { formatFacts, formatTable } from './table.ts';

export function formatServices(services: readonly ServiceRecord[], now: Date): string {
  const rows = services.map((service) => [
    service.service_name,
    service.service_url,
    service.capabilities.join(','),
    formatAge(service.last_heartbeat, now),
    formatAge(service.registered_at, now),
  ]);
  return formatTable(['NAME', 'URL', 'CAPABILITIES', 'HEARTBEAT', 'AGE'], rows);
}

export function formatInstances(instances: readonly InstanceRecord[], now: Date): string {
  const rows = instances.map((instance) => [
    instance.instance_id ?? '',
    instance.service_url,
    instance.healthy ? 'yes' : 'no',
    instance.health ?? '',
    instance.check?.status ?? '',
    instance.zone ?? '',
    String(instance.weight ?? ''),
    instance.version ?? '',
    formatAge(instance.last_heartbeat, now),
    formatAge(instance.registered_at, now),
  ]);
  return formatTable(
    ['INSTANCE', 'URL', 'HEALTHY', 'REPORT', 'CHECK', 'ZONE', 'WEIGHT', 'VERSION', 'HEARTBEAT', 'AGE'],
    rows,
  );
}

export function formatService(service: ServiceRecord, now: Date): string {
  const withAge = (timestamp: string) => `${timestamp} (${formatAge(timestamp, now)} ago)`;
  return formatFacts({
    Name: service.service_name,
    URL: service.service_url,
    Capabilities: service.capabilities.join(', '),
    ID: service.service_id,
    Registered: withAge(service.registered_at),
    'Last heartbeat': withAge(service.last_heartbeat),
  });
}
