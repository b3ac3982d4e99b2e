import { waitUntil } from '@rollcall/local/wait.ts';
import type { LoadGenerator } from '../../load/load-generator.ts';
import { median } from '../../load/statistics.ts';
import { atLeast, atMost, figure, type Row } from '../../report.ts';
import { BARE_SUBJECT } from './acceptance.ts';
import { MAIL, type Messaging, SMTP_CONNECTIONS } from './messaging.ts';

const ROUNDS = 5;
const PER_ROUND = 1500;
const DRAIN_TIMEOUT_MS = 120_000;

interface DrainContext {
  readonly generator: LoadGenerator;
  /** With the heap of the service: how often V8 collects depends on it. */
  readonly mailer: LoadGenerator;
  readonly log: (line: string) => void;
}

/**
 * What {@link acceptanceRows} left is sent, in turns with a bare pool of nodemailer: once in a process with
 * the heap of the service, and once with Node's own.
 */
export async function drainRows(messaging: Messaging, { generator, mailer, log }: DrainContext): Promise<Row[]> {
  const { smtpPort } = messaging;
  const by = async (process: LoadGenerator): Promise<number> => {
    const mail = { ...MAIL, from: 'shop@shop.example', to: 'buyer@example.com' };
    const pace = { amount: PER_ROUND };
    const result = await process.run({ kind: 'mails', smtpPort, mail, connections: SMTP_CONNECTIONS, pace });
    if (result.failures > 0) throw new Error(`${result.failures} mails were not taken`);
    return result.perSecond;
  };
  const turn = async () => ({ bare: await by(mailer), roomy: await by(generator), drained: await drain(messaging) });
  await turn();
  log('communication: sending');
  const rounds: Awaited<ReturnType<typeof turn>>[] = [];
  for (let round = 0; round < ROUNDS; round += 1) rounds.push(await turn());
  const { rows } = await messaging.tables.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM messages WHERE state IN ('failed', 'unknown') OR attempts > 1`,
  );
  return [
    figure('mails by a bare pool of nodemailer', median(rounds.map(({ bare }) => bare)), '1/s'),
    figure("mails by a bare pool with Node's own heap", median(rounds.map(({ roomy }) => roomy)), '1/s'),
    atLeast(100, figure('mails sent by a replica', median(rounds.map(({ drained }) => drained)), '1/s')),
    atLeast(0.6, figure('mails sent / by a bare pool', median(rounds.map((each) => each.drained / each.bare)), '')),
    figure("mails sent / with Node's own heap", median(rounds.map((each) => each.drained / each.roomy)), ''),
    atMost(0, figure('mails that did not leave at the first attempt', rows[0]?.count ?? Number.NaN, '')),
  ];
}

/** @returns how many a second left, from the first attempt to the last answer. */
async function drain({ tables, service }: Messaging): Promise<number> {
  const { rows: released } = await tables.query<{ id: string }>(
    `UPDATE messages SET state = 'queued', due_at = now() WHERE id IN (
       SELECT id FROM messages WHERE state = 'scheduled' AND subject <> $1 LIMIT $2) RETURNING id`,
    [BARE_SUBJECT, PER_ROUND],
  );
  const ids = released.map(({ id }) => id);
  const isDrained = async (): Promise<boolean> => {
    const { rowCount } = await tables.query(
      `SELECT FROM messages WHERE id = ANY($1) AND state IN ('queued', 'sending') LIMIT 1`,
      [ids],
    );
    return rowCount === 0;
  };
  const options = { timeoutMs: DRAIN_TIMEOUT_MS, intervalMs: 250, failed: service.process.failed };
  await waitUntil(`${ids.length} mails have left`, isDrained, options);
  const { rows } = await tables.query<{ seconds: number }>(
    `SELECT extract(epoch FROM max(ended_at) - min(started_at))::float8 AS seconds
     FROM attempts WHERE message_id = ANY($1)`,
    [ids],
  );
  return ids.length / (rows[0]?.seconds ?? Number.NaN);
}
