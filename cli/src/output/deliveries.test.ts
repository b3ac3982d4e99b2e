import type { DeliveryRecord } from '@rollcall/client/delivery-types.ts';
import { expect, it } from 'vitest';
import { formatDeliveries, formatDelivery } from './deliveries.ts';

const now = new Date('2026-11-20T12:00:00Z');

const dead: DeliveryRecord = {
  id: '3f0c9a52-6c1e-4d0b-9b57-2f6a1d8e4c11',
  service_name: 'shop',
  channel: 'chat',
  event: 'job.failed',
  state: 'dead',
  attempts: 13,
  last_attempt_at: '2026-11-20T11:30:00.000+00:00',
  last_result: 'answer 500',
  created_at: '2026-11-20T09:00:00.000+00:00',
  payload: { message: "Deployment of 'shop' has failed", severity: 'error' },
};

const fresh: DeliveryRecord = {
  ...dead,
  id: 'b',
  event: 'notification',
  state: 'pending',
  attempts: 0,
  last_attempt_at: null,
  last_result: null,
  payload: { message: 'a\u001b[2Jb' },
};

it('deliveries are a table', () => {
  expect(formatDeliveries([dead, { ...fresh, created_at: '2026-11-20T11:59:55Z' }], now)).toBe(
    [
      'DELIVERY                               SERVICE   CHANNEL   EVENT          STATE     ATTEMPTS   AGE   RESULT',
      '3f0c9a52-6c1e-4d0b-9b57-2f6a1d8e4c11   shop      chat      job.failed     dead      13         3h    answer 500',
      'b                                      shop      chat      notification   pending   0          5s    -',
      '',
    ].join('\n'),
  );
});

it('one delivery is a list of facts', () => {
  expect(formatDelivery(dead, now)).toBe(
    [
      'Delivery:       3f0c9a52-6c1e-4d0b-9b57-2f6a1d8e4c11',
      'Service:        shop',
      'Channel:        chat',
      'Event:          job.failed',
      'State:          dead',
      'Attempts:       13',
      'Result:         answer 500',
      "Message:        Deployment of 'shop' has failed",
      'Created:        2026-11-20T09:00:00.000+00:00 (3h ago)',
      'Last attempt:   2026-11-20T11:30:00.000+00:00 (30m ago)',
      '',
    ].join('\n'),
  );
});

it('shows no control characters, and a dash for what there is not', () => {
  const lines = formatDelivery(fresh, now).split('\n');
  expect(lines).toContain('Message:        a\uFFFD[2Jb');
  expect(lines).toContain('Result:         -');
  expect(formatDelivery({ ...fresh, payload: { message: 7 } }, now)).toContain('Message:        -\n');
});
