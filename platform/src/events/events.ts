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
export interface RecordEvents {
  (client: PoolClient, events: readonly NewEvent[]): Promise<void>;
  /**
   * An event for `INSERT INTO events (id, subject, type, resource_id, data)` within the one statement
   * that makes it happen: that spares the round trips of a transaction.
   */
  readonly valuesOf: (event: NewEvent) => EventValues;
}

type EventValues = readonly [id: string, subject: string, type: string, resourceId: string, data: Buffer];

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
  const valuesOf = ({ subject, type, resourceId, data }: NewEvent): EventValues => {
    if (!types.includes(type)) throw new Error(`No type of event is named ${type}`);
    const id = randomUUID();
    return [id, subject, type, resourceId, vault.seal(JSON.stringify(data), eventContext(id))];
  };
  const record = async (client: PoolClient, events: readonly NewEvent[]): Promise<void> => {
    if (events.length === 0) return;
    const rows = events.map(valuesOf);
    await client.query(
      `INSERT INTO events (id, subject, type, resource_id, data)
       SELECT id, subject, type, resource_id, data
       FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::bytea[])
         WITH ORDINALITY AS event (id, subject, type, resource_id, data, place)
       ORDER BY place`,
      [0, 1, 2, 3, 4].map((column) => rows.map((row) => row[column])),
    );
  };
  return Object.assign(record, { valuesOf });
}
