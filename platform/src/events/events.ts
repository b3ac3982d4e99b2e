import { randomUUID } from 'node:crypto';
import type { PoolClient } from '../postgres/pool.ts';
import type { Vault } from '../vault.ts';

/** Something that happened to what belongs to a subject. */
interface NewEvent {
  /** Whose it is: nobody else is told. */
  readonly subject: string;
  /** `<kind>.<what happened>`, such as `message.delivered`. */
  readonly type: string;
  /** Of the message, payment, invoice or whatever it happened to. */
  readonly resourceId: string;
  /**
   * The resource as its owner reads it by the API, without whom it is about: no recipient, address,
   * name or text of a message. Receivers keep what they get, and log it.
   */
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * Writes events down in the transaction that makes them happen, after the statement that changes the
 * resource: its lock on the row keeps the events of a resource in order.
 */
export type RecordEvents = (client: PoolClient, events: readonly NewEvent[]) => Promise<void>;

/** What the data of an event is sealed for. */
export function eventContext(id: string): string {
  return `event ${id}`;
}

/**
 * Of the table `events` (docs/decisions/0372).
 *
 * @param types all that there are: webhooks can ask for no others.
 */
export function createEventRecorder(vault: Vault, types: readonly string[]): RecordEvents {
  return async (client, events) => {
    if (events.length === 0) return;
    const unknown = events.find(({ type }) => !types.includes(type));
    if (unknown !== undefined) throw new Error(`No type of event is named ${unknown.type}`);
    const rows = events.map((event) => ({ ...event, id: randomUUID() }));
    await client.query(
      `INSERT INTO events (id, subject, type, resource_id, data)
       SELECT id, subject, type, resource_id, data
       FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::bytea[])
         WITH ORDINALITY AS event (id, subject, type, resource_id, data, place)
       ORDER BY place`,
      [
        rows.map(({ id }) => id),
        rows.map(({ subject }) => subject),
        rows.map(({ type }) => type),
        rows.map(({ resourceId }) => resourceId),
        rows.map(({ id, data }) => vault.seal(JSON.stringify(data), eventContext(id))),
      ],
    );
  };
}
