import type { Clock } from '@rollcall/platform/clock.ts';
import type { RecordEvents } from '@rollcall/platform/events/events.ts';
import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import { bytesIn, createSharedStatement } from '@rollcall/platform/postgres/shared-statement.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import type { AttemptEnd, DueMessage, MessageChange } from '../domain/message-store.ts';
import { attemptMoves, messageMoves } from '../domain/states.ts';
import { IS_SENT, stateEvent } from './message-changes.ts';
import { shortKey } from './short-keys.ts';

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

/** A call that is to be written down. */
interface Beginning {
  readonly due: DueMessage;
  readonly provider: string;
  readonly leaseMs: number;
}

/** A call that is over. */
interface Finished {
  readonly due: DueMessage;
  readonly end: AttemptEnd;
  readonly change: MessageChange;
}

// The ids are given twice: by what is in JSON alone, PostgreSQL would rather read the whole table.
const BEGIN = `
  WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1) AS row (id uuid, provider text, lease_ms double precision,
      event_id uuid, event_type text, event_data bytea)),
  begun AS (
    UPDATE messages SET state = $3, provider = asked.provider, attempts = attempts + 1, begun_at = now(), repeats = 0,
      due_at = now() + make_interval(secs => lease_ms / 1000)
    FROM asked WHERE messages.id = ANY($2) AND messages.id = asked.id AND state = ANY($4)
    RETURNING messages.id, subject, messages.provider, attempts, deduplication_id, content,
      event_id, event_type, event_data),
  attempt AS (
    INSERT INTO attempts (message_id, number, provider, state) SELECT id, attempts, provider, 'begun' FROM begun),
  told AS (
    INSERT INTO events (id, subject, type, resource_id, data)
    SELECT event_id, subject, event_type, id, event_data FROM begun)
  SELECT id, attempts, deduplication_id, content FROM begun`;

/** Writes calls down, with their events. Undefined: the message is no longer to be sent. */
export function beginsAttempt({ pool, recordEvents }: SendingTableDeps) {
  const { from, to } = messageMoves.begun;
  return createSharedStatement<Beginning, BegunRow | undefined>({
    async run(calls) {
      const asked = calls.map(({ due, provider, leaseMs }) => ({
        id: due.id,
        provider,
        lease_ms: leaseMs,
        ...eventOf(recordEvents, { ...toldOf(due), state: to, provider }),
      }));
      const values = [JSON.stringify(asked), asked.map(({ id }) => id), to, from];
      const { rows } = await pool().query<BegunRow>({ name: 'begin-attempts', text: BEGIN, values });
      const byId = new Map(rows.map((row) => [row.id, row]));
      return calls.map(({ due }) => byId.get(due.id));
    },
    rowOf: ({ due }) => due.id,
    // The contents come back with the rows.
    bytesOf: ({ due }) => due.contentBytes,
  });
}

/** Calls end one by one; their place is free a little later. */
const FINISH_GATHER_MS = 10;

// A report may have ended an attempt before the answer came, which has the provider's id.
const FINISH = `
  WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1) AS row (id uuid, number integer, provider_id text,
      attempt_from text[], attempt_state text, attempt_reason text, state_from text[], state text, reason text,
      due_in_ms double precision, tried text[], pauses integer, repeats integer, sent_at timestamptz,
      event_id uuid, event_type text, event_data bytea)),
  attempt AS (
    UPDATE attempts SET provider_id = coalesce(asked.provider_id, attempts.provider_id),
      ended_at = coalesce(ended_at, now()),
      state = CASE WHEN attempts.state = ANY(attempt_from) THEN attempt_state ELSE attempts.state END,
      reason = CASE WHEN attempts.state = ANY(attempt_from) THEN attempt_reason ELSE attempts.reason END
    FROM asked WHERE message_id = ANY($2) AND message_id = asked.id AND attempts.number = asked.number
    RETURNING asked.*),
  message AS (
    UPDATE messages SET state = attempt.state, reason = attempt.reason,
      due_at = now() + make_interval(secs => due_in_ms / 1000),
      tried = coalesce(attempt.tried, messages.tried), pauses = coalesce(attempt.pauses, messages.pauses),
      repeats = coalesce(attempt.repeats, messages.repeats), sent_at = coalesce(messages.sent_at, attempt.sent_at)
    FROM attempt
    WHERE messages.id = ANY($2) AND messages.id = attempt.id AND messages.state = ANY(state_from)
      AND messages.attempts = attempt.number
    RETURNING messages.id, messages.subject, event_id, event_type, event_data),
  told AS (
    INSERT INTO events (id, subject, type, resource_id, data)
    SELECT event_id, subject, event_type, id, event_data FROM message)
  SELECT id FROM message`;

/** Ends calls, and changes their messages where they still are the last ones. @returns whether it did. */
export function finishesLastAttempt({ pool, recordEvents, clock }: SendingTableDeps) {
  return createSharedStatement<Finished, boolean>({
    async run(calls) {
      const asked = calls.map((call) => finishedRow(recordEvents, call, clock.now()));
      const values = [JSON.stringify(asked), asked.map(({ id }) => id)];
      const { rows } = await pool().query<{ id: string }>({ name: 'finish-attempts', text: FINISH, values });
      const ids = new Set(rows.map(({ id }) => id));
      return calls.map(({ due }) => ids.has(due.id));
    },
    rowOf: ({ due }) => due.id,
    gatherMs: FINISH_GATHER_MS,
  });
}

/** Of {@link FINISH}. */
function finishedRow(recordEvents: RecordEvents, { due, end, change }: Finished, now: Date) {
  const attempt = attemptMoves[end.event];
  const move = messageMoves[change.event];
  const sentAt = IS_SENT.has(change.event) ? now : null;
  const told = { ...toldOf(due), state: move.to, reason: change.reason ?? null, sentAt: due.sentAt ?? sentAt };
  return {
    id: due.id,
    number: end.number,
    provider_id: end.providerId && shortKey(end.providerId),
    attempt_from: attempt.from,
    attempt_state: attempt.to,
    attempt_reason: end.reason,
    state_from: move.from,
    state: move.to,
    reason: change.reason,
    due_in_ms: change.dueInMs,
    tried: change.tried,
    pauses: change.pauses,
    repeats: change.repeats,
    sent_at: sentAt,
    ...eventOf(recordEvents, told),
  };
}

function eventOf(recordEvents: RecordEvents, told: Parameters<typeof stateEvent>[0]) {
  const [id, , type, , data] = recordEvents.valuesOf(stateEvent(told));
  return { event_id: id, event_type: type, event_data: bytesIn(data) };
}

/** What is told of a message that stays as it is. */
function toldOf({ provider, reason, sentAt, ...due }: DueMessage) {
  return { ...due, provider: provider ?? null, reason: reason ?? null, sentAt: sentAt ?? null };
}
