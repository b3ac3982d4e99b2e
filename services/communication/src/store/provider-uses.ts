import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { QuotaStore } from '../domain/quotas.ts';

interface Row {
  readonly provider: string;
  readonly in_hour: number;
  readonly in_day: number;
  readonly hour_ends_in_ms: number;
  readonly day_ends_in_ms: number;
}

// One row, so that both are counted or neither. Whoever waited for the row may come of an hour before.
const TAKE = `
  INSERT INTO provider_uses AS uses (provider, hour, in_hour, day, in_day)
  VALUES ($1, date_trunc('hour', now(), 'UTC'), 1, date_trunc('day', now(), 'UTC'), 1)
  ON CONFLICT (provider) DO UPDATE SET
    hour = greatest(uses.hour, excluded.hour),
    in_hour = CASE WHEN uses.hour < excluded.hour THEN 1 ELSE uses.in_hour + 1 END,
    day = greatest(uses.day, excluded.day),
    in_day = CASE WHEN uses.day < excluded.day THEN 1 ELSE uses.in_day + 1 END
  WHERE (uses.hour < excluded.hour OR $2::integer IS NULL OR uses.in_hour < $2)
    AND (uses.day < excluded.day OR $3::integer IS NULL OR uses.in_day < $3)`;

const GIVE_BACK = `
  UPDATE provider_uses SET
    in_hour = greatest(0, in_hour - (hour <= now() - make_interval(secs => $2))::integer),
    in_day = greatest(0, in_day - (day <= now() - make_interval(secs => $2))::integer)
  WHERE provider = $1`;

const USES = `
  WITH period AS (SELECT date_trunc('hour', now(), 'UTC') AS hour, date_trunc('day', now(), 'UTC') AS day)
  SELECT name AS provider,
    CASE WHEN uses.hour >= period.hour THEN in_hour ELSE 0 END AS in_hour,
    CASE WHEN uses.day >= period.day THEN in_day ELSE 0 END AS in_day,
    extract(epoch FROM period.hour + interval '1 hour' - now())::float8 * 1000 AS hour_ends_in_ms,
    extract(epoch FROM period.day + interval '24 hours' - now())::float8 * 1000 AS day_ends_in_ms
  FROM period CROSS JOIN unnest($1::text[]) AS name LEFT JOIN provider_uses AS uses ON uses.provider = name`;

/** See {@link QuotaStore}. @param pool throws while the schema is not there yet. */
export function createProviderUses(pool: () => Pool): QuotaStore {
  return {
    async take(provider, { perHour, perDay }) {
      const { rowCount } = await pool().query(TAKE, [provider, perHour, perDay]);
      return rowCount === 1;
    },
    async giveBack(provider, withinMs) {
      await pool().query(GIVE_BACK, [provider, withinMs / 1000]);
    },
    async usesOf(providers) {
      const { rows } = await pool().query<Row>(USES, [providers]);
      return new Map(
        rows.map((row) => [
          row.provider,
          {
            inHour: row.in_hour,
            inDay: row.in_day,
            hourEndsInMs: row.hour_ends_in_ms,
            dayEndsInMs: row.day_ends_in_ms,
          },
        ]),
      );
    },
  };
}
