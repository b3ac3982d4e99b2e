import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { ArtifactType, Release, ReleaseStore } from '../domain/delivery-ports.ts';

const VERSIONS_MAX = 1000;

/** @param pool throws while the schema is not there yet. */
export function createReleaseStore(pool: () => Pool): ReleaseStore {
  return {
    async record({ serviceName, version, artifact }) {
      await pool().query(
        `INSERT INTO releases (service_name, version, artifact_url, artifact_type, checksum)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (service_name, version) DO UPDATE SET artifact_url = EXCLUDED.artifact_url,
           artifact_type = EXCLUDED.artifact_type, checksum = EXCLUDED.checksum, announced_at = now()`,
        [serviceName, version, artifact.url, artifact.type, artifact.checksum ?? null],
      );
    },
    find: async (serviceName, version) => find(pool(), serviceName, version),
    async versions(serviceName) {
      const { rows } = await pool().query<{ version: string }>(
        'SELECT version FROM releases WHERE service_name = $1 ORDER BY announced_at DESC, version LIMIT $2',
        [serviceName, VERSIONS_MAX],
      );
      return rows.map((row) => row.version);
    },
  };
}

async function find(pool: Pool, serviceName: string, version: string): Promise<Release | undefined> {
  const { rows } = await pool.query<{ artifact_url: string; artifact_type: ArtifactType; checksum: string | null }>(
    'SELECT artifact_url, artifact_type, checksum FROM releases WHERE service_name = $1 AND version = $2',
    [serviceName, version],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const artifact = { url: row.artifact_url, type: row.artifact_type, checksum: row.checksum ?? undefined };
  return { serviceName, version, artifact };
}
