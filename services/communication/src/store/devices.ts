import { randomUUID } from 'node:crypto';
import { indexAnew } from '@rollcall/platform/postgres/index-anew.ts';
import { readNewest } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool } from '@rollcall/platform/postgres/pool.ts';
import type { BlindIndex, Vault } from '@rollcall/platform/vault.ts';
import type { Device, DeviceStore } from '../domain/devices.ts';
import type { PushPlatform, PushTarget } from '../domain/recipients.ts';

/** Longer than anybody goes on sending to a token that is gone. */
const GONE_DAYS = 180;

/** How rows of one device are told from others. */
export const SAME_DEVICE = { table: 'devices', column: 'token_index', uniqueWith: ['subject'] } as const;

export interface DeviceTableDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly vault: Vault;
  /** Of tokens. */
  readonly index: BlindIndex;
  /** Of those who use them. */
  readonly users: BlindIndex;
}

/** What is sealed of a device, as JSON. */
export type DeviceDetails = Pick<Device, 'target'> & Partial<Pick<Device, 'user' | 'app'>>;

export interface DeviceTable extends DeviceStore {
  /** Forgets tokens that are long gone. @param limit how many at most. @returns how many. */
  prune(limit: number): Promise<number>;
}

export function createDeviceTable({ pool, vault, index, users }: DeviceTableDeps): DeviceTable {
  const candidates = (targets: readonly PushTarget[]) => targets.flatMap((target) => index.candidates(keyOf(target)));

  function deviceOf({ id, details, registered_at }: { id: string; details: Buffer; registered_at: Date }): Device {
    const { target, user, app }: DeviceDetails = JSON.parse(vault.open(details, deviceContext(id)).toString());
    return { target, user, app, registeredAt: registered_at };
  }

  return {
    register: (subject, device) =>
      inTransaction(pool(), async (client) => {
        const { target, user, app } = device;
        await indexAnew(client, SAME_DEVICE, index.candidates(keyOf(target)));
        const { rows } = await client.query<{ id: string; was_there: boolean; registered_at: Date }>(
          `WITH before AS (SELECT id FROM devices WHERE subject = $2 AND token_index = $3 AND gone_at IS NULL)
           INSERT INTO devices (id, subject, token_index, platform) VALUES ($1, $2, $3, $4)
           ON CONFLICT (subject, token_index) DO UPDATE SET registered_at = now(), gone_at = NULL
           RETURNING id, registered_at, EXISTS (SELECT FROM before) AS was_there`,
          [randomUUID(), subject, index.of(keyOf(target)), target.platform],
        );
        const [row] = rows;
        if (row === undefined) throw new Error('PostgreSQL returned no row of a device that was written');
        const details = vault.seal(JSON.stringify({ target, user, app }), deviceContext(row.id));
        const userIndex = user === undefined ? null : users.of(user);
        await client.query('UPDATE devices SET details = $2, user_index = $3 WHERE id = $1', [
          row.id,
          details,
          userIndex,
        ]);
        const registered: Device = { ...device, registeredAt: row.registered_at };
        return { device: registered, isNew: !row.was_there };
      }),
    async remove(subject, targets) {
      const { rowCount } = await pool().query(
        'DELETE FROM devices WHERE subject = $1 AND token_index = ANY($2) AND gone_at IS NULL',
        [subject, candidates(targets)],
      );
      return rowCount !== 0;
    },
    async list(subject, user, page) {
      const { rows, ...rest } = await readNewest<{ id: string; details: Buffer; registered_at: Date }>(pool(), {
        table: 'devices',
        columns: 'id, details, registered_at',
        where: `subject = $1 AND gone_at IS NULL AND details IS NOT NULL
          AND ($2::bytea[] IS NULL OR user_index = ANY($2))`,
        parameters: [subject, user === undefined ? undefined : users.candidates(user)],
        page,
      });
      return { rows: rows.map(deviceOf), ...rest };
    },
    async find(subject, targets) {
      const { rows } = await pool().query<{ platform: PushPlatform; is_gone: boolean }>(
        `SELECT platform, gone_at IS NOT NULL AS is_gone FROM devices
         WHERE subject = $1 AND token_index = ANY($2)
         ORDER BY is_gone, registered_at DESC LIMIT 1`,
        [subject, candidates(targets)],
      );
      const [row] = rows;
      return row && { platform: row.platform, isGone: row.is_gone };
    },
    forget: (subject, target, since) =>
      inTransaction(pool(), async (client) => {
        await indexAnew(client, SAME_DEVICE, index.candidates(keyOf(target)));
        await client.query(
          `INSERT INTO devices AS known (id, subject, token_index, platform, registered_at, gone_at)
           VALUES ($1, $2, $3, $4, $5, $5)
           ON CONFLICT (subject, token_index) DO UPDATE
             SET gone_at = excluded.gone_at, details = NULL, user_index = NULL
           WHERE known.registered_at <= excluded.gone_at`,
          [randomUUID(), subject, index.of(keyOf(target)), target.platform, since],
        );
      }),
    async prune(limit) {
      const { rowCount } = await pool().query(
        `DELETE FROM devices WHERE id IN (
           SELECT id FROM devices WHERE gone_at < now() - interval '${GONE_DAYS} days' LIMIT $1)`,
        [limit],
      );
      return rowCount ?? 0;
    },
  };
}

/** What a device is known by. A browser's subscription is known by its endpoint: its keys may change. */
export function keyOf(target: PushTarget): string {
  return `${target.platform} ${target.platform === 'webpush' ? target.endpoint : target.token}`;
}

/** What the details of a device are sealed for. */
export function deviceContext(id: string): string {
  return `device ${id}`;
}
