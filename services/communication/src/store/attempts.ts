import type { Clock } from '@rollcall/platform/clock.ts';
import type { RecordEvents } from '@rollcall/platform/events/events.ts';
import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import type { AttemptEnd, DueMessage, MessageChange } from '../domain/message-store.ts';
import { attemptMoves, messageMoves } from '../domain/states.ts';
import { IS_SENT, stateEvent } from './message-changes.ts';

export interface SendingTableDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly vault: Vault;
  readonly recordEvents: RecordEvents;
  /** Of when a message was sent, as it is shown. */
  readonly clock: Clock;
}

/** Of a message whose call is written down. */
export interface BegunRow {
  readonly id: string;
  readonly attempts: number;
  readonly deduplication_id: number;
  readonly content: Buffer | null;
}

interface Beginning {
  readonly provider: string;
  readonly leaseMs: number;
}

interface Finished {
  readonly end: AttemptEnd;
  readonly change: MessageChange;
}

/** Writes a call down, with its event. @returns nothing where the message is no longer to be sent. */
export async function beginAttempt(
  { pool, recordEvents }: SendingTableDeps,
  due: DueMessage,
  { provider, leaseMs }: Beginning,
): Promise<readonly BegunRow[]> {
  const { from, to } = messageMoves.begun;
  const { rows } = await pool().query<BegunRow>(
    `WITH begun AS (
       UPDATE messages SET state = $3, provider = $2, attempts = attempts + 1, begun_at = now(), repeats = 0,
         due_at = now() + make_interval(secs => $4::double precision / 1000)
       WHERE id = $1 AND state = ANY($5)
       RETURNING id, subject, attempts, deduplication_id, content),
     attempt AS (
       INSERT INTO attempts (message_id, number, provider, state) SELECT id, attempts, $2, 'begun' FROM begun),
     event AS (
       INSERT INTO events (id, subject, type, resource_id, data)
       SELECT $6::uuid, subject, $7::text, id, $8::bytea FROM begun)
     SELECT id, attempts, deduplication_id, content FROM begun`,
    [due.id, provider, to, leaseMs, from, ...eventOf(recordEvents, { ...toldOf(due), state: to, provider })],
  );
  return rows;
}

/** Ends a call, and changes the message where that call still is its last one. */
export async function finishLastAttempt(
  { pool, recordEvents, clock }: SendingTableDeps,
  due: DueMessage,
  { end, change }: Finished,
): Promise<boolean> {
  const { from, to } = attemptMoves[end.event];
  const move = messageMoves[change.event];
  const sentAt = IS_SENT.has(change.event) ? clock.now() : null;
  const told = { ...toldOf(due), state: move.to, reason: change.reason ?? null };
  const { rowCount } = await pool().query(
    // A report may have ended it before the answer came, which has the provider's id.
    `WITH attempt AS (
       UPDATE attempts SET provider_id = coalesce($5, provider_id), ended_at = coalesce(ended_at, now()),
         state = CASE WHEN state = ANY($6) THEN $3 ELSE state END,
         reason = CASE WHEN state = ANY($6) THEN $4 ELSE reason END
       WHERE message_id = $1 AND number = $2 RETURNING message_id, number, provider),
     message AS (
       UPDATE messages SET state = $7, reason = $8,
         due_at = now() + make_interval(secs => $9::double precision / 1000),
         tried = coalesce($10, tried), pauses = coalesce($11, pauses), repeats = coalesce($12, repeats),
         sent_at = coalesce(sent_at, $13)
       FROM attempt WHERE id = message_id AND messages.state = ANY($14) AND attempts = attempt.number
       RETURNING id, subject)
     INSERT INTO events (id, subject, type, resource_id, data)
     SELECT $15::uuid, subject, $16::text, id, $17::bytea FROM message`,
    [
      due.id,
      end.number,
      to,
      end.reason,
      end.providerId,
      from,
      move.to,
      change.reason,
      change.dueInMs,
      change.tried,
      change.pauses,
      change.repeats,
      sentAt,
      move.from,
      ...eventOf(recordEvents, { ...told, provider: due.provider ?? null, sentAt: due.sentAt ?? sentAt }),
    ],
  );
  return rowCount === 1;
}

function eventOf(recordEvents: RecordEvents, told: Parameters<typeof stateEvent>[0]): readonly unknown[] {
  const [id, , type, , data] = recordEvents.valuesOf(stateEvent(told));
  return [id, type, data];
}

/** What is told of a message that stays as it is. */
function toldOf({ provider, reason, sentAt, ...due }: DueMessage) {
  return { ...due, provider: provider ?? null, reason: reason ?? null, sentAt: sentAt ?? null };
}
