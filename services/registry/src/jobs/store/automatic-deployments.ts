import { createHash } from 'node:crypto';
import { inTransaction, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createServiceLimiter } from '../../common/overload.ts';
import type { Artifact } from '../../releases/domain/release.ts';
import type { AutomaticDeployments } from '../domain/automatic-deployment.ts';

/**
 * Services of which each replica sees to one at a time: each keeps a connection for its lock while
 * it uses others, and all connections kept like that would wait for one another.
 */
const SERVICES = 3;

/** @param pool throws while the schema is not there yet. */
export function createAutomaticDeployments(pool: () => Pool): AutomaticDeployments {
  const limiter = createServiceLimiter(SERVICES, 'Too many versions are to be deployed by themselves');
  return {
    alone: (serviceName, work) =>
      limiter.run(serviceName, () =>
        inTransaction(pool(), async (client) => {
          const lock = `rollcall-automatic-deployments-${serviceName}`;
          await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [lock]);
          return work();
        }),
      ),
    async begin({ release, at }) {
      const { serviceName, version, artifact } = release;
      const { rows } = await pool().query<{ requested_at: Date; created: boolean; tried: boolean }>(
        `INSERT INTO automatic_deployments (service_name, version, artifact, requested_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (service_name, version, artifact) DO UPDATE SET created = automatic_deployments.created
         RETURNING requested_at, created, EXISTS (
           SELECT FROM history WHERE history.service_name = $1 AND new_version = $2
             AND artifact_url = $5 AND history.checksum = $6) AS tried`,
        [serviceName, version, hashOf(artifact), at, artifact.url, artifact.checksum ?? ''],
      );
      const [row] = rows;
      return row === undefined || row.created || row.tried ? undefined : row.requested_at;
    },
    async end({ serviceName, version, artifact }) {
      await pool().query(
        'UPDATE automatic_deployments SET created = true WHERE service_name = $1 AND version = $2 AND artifact = $3',
        [serviceName, version, hashOf(artifact)],
      );
    },
  };
}

/** A URL may be too long for an index. */
function hashOf({ type, url, checksum = '' }: Artifact): string {
  return createHash('sha256')
    .update(JSON.stringify([type, url, checksum]))
    .digest('hex');
}
