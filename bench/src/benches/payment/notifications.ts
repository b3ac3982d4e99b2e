import { waitUntil } from '@rollcall/local/wait.ts';
import { signStandard } from '@rollcall/platform/webhooks/signatures.ts';
import type { LoadGenerator } from '../../load/load-generator.ts';
import { quantile } from '../../load/statistics.ts';
import type { OwnPart } from '../../load/tasks.ts';
import { atMost, figure, type Row } from '../../report.ts';
import { SHOP } from './making.ts';
import { PAYMENT, type Paying } from './paying.ts';

const PER_SECOND = 200;
const COUNT = 4000;
/** In which server and generator come back from having rested. */
const SETTLE_MS = 2000;
const CONNECTIONS = 32;
const TIMEOUT_MS = 120_000;

/** The sandbox tells 200 times a second that a payment of those that {@link makingRows} made is paid. */
export async function notificationRows(
  paying: Paying,
  { generator, log }: { readonly generator: LoadGenerator; readonly log: (line: string) => void },
): Promise<Row[]> {
  const { service, tables } = paying;
  const { rows: open } = await tables.query<{ id: string }>(
    `SELECT id FROM payments WHERE subject = $1 AND state = 'pending' ORDER BY created_at LIMIT $2`,
    [SHOP, COUNT],
  );
  const ids = open.map(({ id }) => id);
  log(`payment: ${PER_SECOND} notifications/s`);
  const told = await generator.run({
    kind: 'http',
    port: service.port,
    method: 'POST',
    path: '/api/v1/notifications/sandbox',
    inTurn: ids.map((id) => notificationOf(paying.secret, id)),
    names: { prefix: '', first: 0, count: ids.length },
    connections: CONNECTIONS,
    pace: { ratePerSecond: PER_SECOND, durationMs: (ids.length / PER_SECOND) * 1000, settleMs: SETTLE_MS },
  });
  const isHandled = async (): Promise<boolean> => {
    const { rowCount } = await tables.query('SELECT FROM notifications WHERE due_at IS NOT NULL LIMIT 1');
    return rowCount === 0;
  };
  await waitUntil('all notifications are handled', isHandled, {
    timeoutMs: TIMEOUT_MS,
    intervalMs: 200,
    failed: service.process.failed,
  });
  const { rows: captured } = await tables.query<{ id: string; at_ms: number }>(
    `SELECT payment_id AS id, extract(epoch FROM created_at)::float8 * 1000 AS at_ms
     FROM payment_events WHERE event = 'captured' AND payment_id = ANY($1)`,
    [ids],
  );
  const places = new Map(ids.map((id, index) => [id, index]));
  const tookMs = captured.flatMap(({ id, at_ms: atMs }) => {
    const dueMs = ((places.get(id) ?? Number.NaN) * 1000) / PER_SECOND;
    return dueMs < SETTLE_MS ? [] : [atMs - told.startedAtMs - dueMs];
  });
  return [
    figure('notifications', told.perSecond, '1/s'),
    figure('p99 of the answer to a notification', told.latencyMs.p99, 'ms'),
    figure('p50 from a notification until its payment has succeeded', quantile(tookMs, 0.5), 'ms'),
    atMost(100, figure('p99 from a notification until its payment has succeeded', quantile(tookMs, 0.99), 'ms')),
    atMost(0, figure('notifications refused or without effect', told.failures + ids.length - captured.length, '')),
  ];
}

function notificationOf(secret: string, paymentId: string): OwnPart {
  const { amount, currency } = PAYMENT;
  const body = JSON.stringify({ paymentId, decision: 'pay', amount: String(amount), currency, keepsMethod: false });
  const id = `${paymentId}:pay`;
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = signStandard(secret, { id, timestamp, body: Buffer.from(body) });
  return {
    body,
    headers: { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature },
  };
}
