import { inTransaction, type Pool, type PoolClient } from '@rollcall/platform/postgres/pool.ts';
import { createServiceLimiter } from '../../common/overload.ts';
import type { ArtifactType, Release, ReleaseStore } from '../domain/release.ts';

const VERSIONS_MAX = 1000;

/**
 * Services of which each replica records a release with work at a time: each keeps a connection
 * meanwhile, and others need some.
 */
const SERVICES = 4;

/** @param pool throws while the schema is not there yet. */
export function createReleaseStore(pool: () => Pool): ReleaseStore {
  const limiter = createServiceLimiter(SERVICES, 'Too many jobs are being asked for');
  return {
    record: async (release) => record(pool(), release),
    recordWith: async (release, work) =>
      limiter.run(release.serviceName, () =>
        inTransaction(pool(), async (client) => {
          // The row is locked until the end.
          await record(client, release);
          return work();
        }),
      ),
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

async function record(client: Pool | PoolClient, { serviceName, version, artifact }: Release): Promise<void> {
  await client.query(
    `INSERT INTO releases (service_name, version, artifact_url, artifact_type, checksum)
     VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (service_name, version) DO UPDATE SET artifact_url = EXCLUDED.artifact_url,
       artifact_type = EXCLUDED.artifact_type, checksum = EXCLUDED.checksum, announced_at = now()`,
    [serviceName, version, artifact.url, artifact.type, artifact.checksum ?? null],
  );
}

async function find(pool: Pool, serviceName: string, version: string): Promise<Release | undefined> {
  const { rows } = await pool.query<{ artifact_url: string; artifact_type: ArtifactType; checksum: string | null }>(
    `SELECT artifact_url, artifact_type, checksum FROM (
       (SELECT artifact_url, artifact_type, nullif(checksum, '') AS checksum, 1 AS preference FROM history
        WHERE service_name = $1 AND new_version = $2 AND outcome = 'success' ORDER BY finished_at DESC, id DESC LIMIT 1)
       UNION ALL
       SELECT artifact_url, artifact_type, checksum, 2 FROM releases WHERE service_name = $1 AND version = $2
     ) known ORDER BY preference LIMIT 1`,
    [serviceName, version],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const artifact = { url: row.artifact_url, type: row.artifact_type, checksum: row.checksum ?? undefined };
  return { serviceName, version, artifact };
}
