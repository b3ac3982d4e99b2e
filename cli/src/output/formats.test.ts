import { expect, it } from 'vitest';
import { formatService, formatServices } from './services.ts';
import { formatHistory, formatServiceHistory, formatStatistics } from './updates.ts';

const now = new Date('2026-11-20T12:00:00Z');

const shop = {
  service_name: 'shop',
  service_url: 'http://10.0.0.7:8080',
  service_id: '6d1c',
  registered_at: '2026-11-20T09:00:00+00:00',
  last_heartbeat: '2026-11-20T11:59:48+00:00',
  capabilities: ['rest', 'grpc'] as const,
};

const update = {
  service_name: 'shop',
  old_version: '1.3.0',
  new_version: '1.4.0',
  timestamp: '2026-11-20T11:00:00+00:00',
  status: 'success' as const,
  duration_seconds: 42.4,
};

it('lists services', () => {
  expect(formatServices([shop], now)).toBe(
    'NAME   URL                    CAPABILITIES   HEARTBEAT   AGE\n' +
      'shop   http://10.0.0.7:8080   rest,grpc      12s         3h\n',
  );
});

it('shows a service', () => {
  expect(formatService(shop, now)).toBe(
    [
      'Name:             shop',
      'URL:              http://10.0.0.7:8080',
      'Capabilities:     rest, grpc',
      'ID:               6d1c',
      'Registered:       2026-11-20T09:00:00+00:00 (3h ago)',
      'Last heartbeat:   2026-11-20T11:59:48+00:00 (12s ago)',
      '',
    ].join('\n'),
  );
});

it('lists the updates of all services', () => {
  expect(formatHistory([update], now)).toBe(
    'SERVICE   FROM    TO      STATUS    TOOK   AGE\nshop      1.3.0   1.4.0   success   42s    60m\n',
  );
});

it('lists the updates of one service with their artifacts', () => {
  const entry = { ...update, artifact_url: 'registry/shop:1.4.0', checksum: '', artifact_path: '', backup_path: '' };
  expect(formatServiceHistory([entry], now)).toContain('60m   registry/shop:1.4.0\n');
});

it('sums up updates', () => {
  const statistics = {
    total_updates: 12,
    successful_updates: 10,
    failed_updates: 1,
    rolled_back_updates: 1,
    success_rate: 83.333,
    average_duration_seconds: 200,
    services_updated: [{ service_name: 'shop', update_count: 7 }],
  };
  expect(formatStatistics(statistics)).toBe(
    [
      'Updates:            12',
      'Successful:         10 (83.3 %)',
      'Failed:             1',
      'Rolled back:        1',
      'Average duration:   3m20s',
      '',
      'SERVICE   UPDATES',
      'shop      7',
      '',
    ].join('\n'),
  );
  expect(formatStatistics({ ...statistics, services_updated: [] })).not.toContain('SERVICE');
});
