import type { Pool } from '../postgres/pool.ts';
import type { Vault } from '../vault.ts';
import { eventContext } from './events.ts';

/** Before the first event. */
const BEGINNING = '0';
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** An event as its subject is told of it. */
interface SubjectEvent {
  readonly id: string;
  readonly type: string;
  /** As a number of the database's. */
  readonly position: string;
  /** JSON: `id`, `type`, `timestamp` and `data`; the same bytes by each way. */
  readonly text: string;
}

interface EventRow {
  readonly id: string;
  readonly type: string;
  readonly position: string;
  readonly created_at: Date;
  readonly data: Buffer;
}

/** JSON of an event, which is also the body that webhooks are sent. */
export function eventText(vault: Vault, { id, type, created_at, data }: Omit<EventRow, 'position'>): string {
  const opened: unknown = JSON.parse(vault.open(data, eventContext(id)).toString());
  return JSON.stringify({ id, type, timestamp: created_at.toISOString(), data: opened });
}

/** Where somebody reads on. */
export interface Place {
  readonly position: string;
  /** What others are shown of it: the id of an event, or where there is none `0`. */
  readonly cursor: string;
}

/** Reads the events of a subject, in their order. */
export interface EventReader {
  /**
   * Where to go on.
   *
   * @param cursor of an event; undefined: behind the newest.
   * @returns `isReset` where the cursor is not known, or no longer: behind the newest, too.
   */
  placeOf(subject: string, cursor: string | undefined): Promise<Place & { readonly isReset: boolean }>;
  after(subject: string, position: string, limit: number): Promise<readonly SubjectEvent[]>;
  /** Who of these subjects has events after a position. */
  subjectsAfter(position: string, subjects: readonly string[]): Promise<readonly string[]>;
}

/** @param pool throws while the schema is not there yet. */
export function createEventReader(pool: () => Pool, vault: Vault): EventReader {
  async function find(condition: string, parameters: readonly string[]): Promise<Place | undefined> {
    const { rows } = await pool().query<Place>(
      // Those below zero are in no stream: nobody goes on from them.
      `SELECT position, id AS cursor FROM events WHERE subject = $1 AND position > 0 AND ${condition}
       ORDER BY position DESC LIMIT 1`,
      [...parameters],
    );
    return rows[0];
  }

  return {
    async placeOf(subject, cursor) {
      const beginning = { position: BEGINNING, cursor: BEGINNING };
      if (cursor === BEGINNING) return { ...beginning, isReset: false };
      const known = cursor !== undefined && UUID.test(cursor) ? await find('id = $2', [subject, cursor]) : undefined;
      if (known !== undefined) return { ...known, isReset: false };
      return { ...((await find('TRUE', [subject])) ?? beginning), isReset: cursor !== undefined };
    },
    async after(subject, position, limit) {
      const { rows } = await pool().query<EventRow>(
        `SELECT id, type, position, created_at, data FROM events
         WHERE subject = $1 AND position > $2 ORDER BY position LIMIT $3`,
        [subject, position, limit],
      );
      return rows.map((row) => ({ id: row.id, type: row.type, position: row.position, text: eventText(vault, row) }));
    },
    async subjectsAfter(position, subjects) {
      const { rows } = await pool().query<{ subject: string }>(
        'SELECT DISTINCT subject FROM events WHERE position > $1 AND subject = ANY($2)',
        [position, subjects],
      );
      return rows.map(({ subject }) => subject);
    },
  };
}
