import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { createLogger } from '../process/log.ts';
import { createRefusedNotifications } from './refused-notifications.ts';

test('a line a minute tells of all that was refused of a provider for one reason; each is counted', async () => {
  const lines: Readonly<Record<string, unknown>>[] = [];
  let nowMs = 0;
  const metrics = new Registry();
  const onRefused = createRefusedNotifications({
    metrics,
    log: createLogger('test', 'info', { write: (line) => void lines.push(JSON.parse(line)) }),
    clock: { now: () => new Date(0), monotonicMs: () => nowMs },
  });
  for (let count = 0; count < 1000; count += 1) onRefused('stripe', 'signature');
  onRefused('stripe', 'account');
  onRefused('yoco', 'signature');
  nowMs = 59_999;
  onRefused('stripe', 'signature');
  expect(lines).toMatchObject([
    { provider: 'stripe', reason: 'signature', count: 1 },
    { provider: 'stripe', reason: 'account', count: 1 },
    { provider: 'yoco', reason: 'signature', count: 1 },
  ]);
  nowMs = 60_000;
  for (let count = 0; count < 3; count += 1) onRefused('stripe', 'signature');
  expect(lines.slice(3)).toMatchObject([{ provider: 'stripe', reason: 'signature', count: 1001 }]);
  expect(await metrics.metrics()).toContain(
    'rollcall_provider_notifications_refused_total{provider="stripe",reason="signature"} 1004',
  );
});
