import { readPage } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool, type PoolClient } from '@rollcall/platform/postgres/pool.ts';
import { asMembers, columnOf } from '../../common/columns.ts';
import type { Job, JobHistory, JobPhase } from '../../jobs/domain/jobs.ts';
import type { DeliveryStrategy } from '../../jobs/domain/requested-job.ts';
import { objectNameOf } from '../../jobs/store/delivery-jobs.ts';
import type {
  HistoryEntry,
  HistoryQuery,
  HistoryRecord,
  HistoryStore,
  ServiceUpdates,
  UpdateStatus,
} from '../domain/history-store.ts';
import type { Artifact, Release } from '../domain/release.ts';

/** @param pool throws while the schema is not there yet. */
export function createHistoryStore(pool: () => Pool): HistoryStore & JobHistory {
  return {
    record: async (record) => inTransaction(pool(), (client) => write(client, record)),
    page: async (query) => readEntries(pool(), query),
    recorded: async (jobUids) => recorded(pool(), jobUids),
    lastDelivered: async (serviceName) => lastDelivered(pool(), serviceName),
    countUpdates: async () => countUpdates(pool()),
    findJob: async (jobId) => findJob(pool(), jobId),
  };
}

/**
 * What a record implies depends on the others of its service, so those are written one at a time.
 */
async function write(client: PoolClient, record: HistoryRecord): Promise<boolean> {
  await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [
    `rollcall-history-${record.serviceName}`,
  ]);
  const { artifact, oldRelease, ...facts } = record;
  const row = {
    ...facts,
    durationSeconds: (record.finishedAt.getTime() - record.startedAt.getTime()) / 1000,
    artifactUrl: artifact.url,
    artifactType: artifact.type,
    checksum: artifact.checksum ?? '',
  };
  const columns = Object.keys(row).map(columnOf);
  const placeholders = columns.map((_column, index) => `$${index + 1}`);
  const { rowCount } = await client.query(
    `INSERT INTO history (${columns.join()}) VALUES (${placeholders.join()}) ON CONFLICT (job_uid) DO NOTHING`,
    Object.values(row),
  );
  if (rowCount === 0) return false;
  if (record.outcome !== 'success') return true;
  const { serviceName, newVersion: version, finishedAt } = record;
  await keepRelease(client, { serviceName, version, artifact }, finishedAt.toISOString());
  // Nobody has announced it: it is older than all that were.
  if (oldRelease !== undefined) await keepRelease(client, oldRelease, '-infinity');
  await markUndone(client, record);
  return true;
}

/**
 * Unless there is one. One of what ran before gives way to what a job delivered, so that the result
 * does not depend on the order in which the two jobs are recorded.
 *
 * @param announcedAt a time as PostgreSQL reads it; `-infinity` of what ran before.
 */
async function keepRelease(client: PoolClient, { serviceName, version, artifact }: Release, announcedAt: string) {
  await client.query(
    `INSERT INTO releases (service_name, version, artifact_url, artifact_type, checksum, announced_at)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (service_name, version) DO UPDATE SET artifact_url = EXCLUDED.artifact_url,
       artifact_type = EXCLUDED.artifact_type, checksum = EXCLUDED.checksum, announced_at = EXCLUDED.announced_at
     WHERE releases.announced_at = '-infinity' AND EXCLUDED.announced_at <> '-infinity'`,
    [serviceName, version, artifact.url, artifact.type, artifact.checksum ?? null, announcedAt],
  );
}

/**
 * A successful rollback from version V to another one undoes the latest update to V before it. This
 * works out anew which of the updates to the versions concerned are undone, rather than marking
 * one, so that the result does not depend on the order in which jobs are recorded: after an outage
 * that is any order.
 */
async function markUndone(client: PoolClient, record: HistoryRecord): Promise<void> {
  const versions = record.operation === 'Rollback' ? [record.newVersion, record.oldVersion] : [record.newVersion];
  await client.query(
    `UPDATE history SET undone_by = derived.undone_by
     FROM (
       SELECT candidate.id, (
         SELECT rollback.job_uid FROM history rollback
         WHERE rollback.service_name = candidate.service_name
           AND rollback.operation = 'Rollback' AND rollback.outcome = 'success'
           AND rollback.old_version = candidate.new_version AND rollback.new_version <> rollback.old_version
           AND rollback.job_uid <> candidate.job_uid
           AND (rollback.finished_at, rollback.started_at) >= (candidate.finished_at, candidate.started_at)
           AND NOT EXISTS (
             SELECT FROM history later
             WHERE later.service_name = candidate.service_name AND later.new_version = candidate.new_version
               AND later.outcome = 'success' AND later.is_update AND later.job_uid NOT IN (candidate.job_uid, rollback.job_uid)
               AND (later.finished_at, later.started_at) > (candidate.finished_at, candidate.started_at)
               AND (later.finished_at, later.started_at) <= (rollback.finished_at, rollback.started_at))
         ORDER BY rollback.finished_at, rollback.started_at LIMIT 1) AS undone_by
       FROM history candidate
       WHERE candidate.service_name = $1 AND candidate.new_version = ANY($2) AND candidate.outcome = 'success'
         AND candidate.is_update
     ) derived
     WHERE history.id = derived.id AND history.undone_by IS DISTINCT FROM derived.undone_by`,
    [record.serviceName, versions],
  );
}

const isOlderThan = (id: string) => `(finished_at, id) < (SELECT finished_at, id FROM history WHERE id = ${id})`;

async function readEntries(pool: Pool, { serviceName, limit, after }: HistoryQuery) {
  const { rows: entries, total } = await readPage<HistoryEntry>(pool, {
    columns: `id::text AS cursor, ${asMembers('service_name, old_version, new_version, finished_at, status')},
      ${asMembers('duration_seconds, artifact_url, checksum')}`,
    table: 'history',
    where: serviceName === undefined ? 'is_update' : 'is_update AND service_name = $1',
    after: after === undefined ? undefined : { condition: isOlderThan, cursor: after },
    orderBy: 'finished_at DESC, id DESC',
    limit,
    parameters: serviceName === undefined ? [] : [serviceName],
  });
  return { entries, total };
}

async function recorded(pool: Pool, jobUids: readonly string[]): Promise<ReadonlySet<string>> {
  if (jobUids.length === 0) return new Set();
  const { rows } = await pool.query<{ uid: string }>(
    'SELECT job_uid AS uid FROM history WHERE job_uid = ANY($1::text[])',
    [jobUids],
  );
  return new Set(rows.map(({ uid }) => uid));
}

async function lastDelivered(pool: Pool, serviceName: string): Promise<{ version: string } | undefined> {
  const { rows } = await pool.query<{ known: boolean; version: string | null }>(
    `SELECT EXISTS (SELECT FROM history WHERE (is_update OR status = 'success') AND service_name = $1) AS known,
       (SELECT new_version FROM history WHERE service_name = $1 AND status = 'success'
        ORDER BY finished_at DESC, id DESC LIMIT 1) AS version`,
    [serviceName],
  );
  const [row] = rows;
  return row?.known === true ? { version: row.version ?? '' } : undefined;
}

async function countUpdates(pool: Pool): Promise<ServiceUpdates[]> {
  const { rows } = await pool.query<ServiceUpdates>(
    `SELECT service_name AS "serviceName", count(*)::int AS updates,
       (count(*) FILTER (WHERE status = 'success'))::int AS successful,
       (count(*) FILTER (WHERE status = 'failed'))::int AS failed,
       (count(*) FILTER (WHERE status = 'rolled_back'))::int AS "rolledBack",
       sum(duration_seconds) AS "durationSeconds"
     FROM history WHERE is_update GROUP BY service_name ORDER BY updates DESC, service_name COLLATE "C"`,
  );
  return rows;
}

/** A row as it is written; those that are older than a column have null there. */
type RecordedJob = Omit<HistoryRecord, 'artifact' | 'strategy' | 'createdAt' | 'oldRelease' | 'jobId' | 'isUpdate'> & {
  readonly artifactUrl: string;
  readonly artifactType: Artifact['type'];
  readonly checksum: string;
  readonly strategy: DeliveryStrategy | null;
  readonly createdAt: Date | null;
};

const phases: Readonly<Record<UpdateStatus, JobPhase>> = {
  success: 'Succeeded',
  failed: 'Failed',
  rolled_back: 'RolledBack',
};

async function findJob(pool: Pool, jobId: string): Promise<Job | undefined> {
  const { rows } = await pool.query<RecordedJob>(
    `SELECT ${asMembers('job_uid, job_name, operation, service_name, old_version, new_version, outcome, artifact_url')},
       ${asMembers('artifact_type, checksum, requested_by, strategy, reason, message, created_at, started_at, finished_at')}
     FROM history WHERE job_name = $1 AND coalesce(job_id, $2) = $2 ORDER BY finished_at DESC, id DESC LIMIT 1`,
    [objectNameOf(jobId), jobId],
  );
  const [row] = rows;
  return row === undefined ? undefined : toJob(row, jobId);
}

/** What the history does not keep is undefined. */
function toJob(row: RecordedJob, id: string): Job {
  const { operation, serviceName, newVersion: version, requestedBy, startedAt, finishedAt } = row;
  return {
    uid: row.jobUid,
    id,
    name: row.jobName,
    operation,
    serviceName,
    version,
    artifact: { url: row.artifactUrl, type: row.artifactType, checksum: row.checksum || undefined },
    strategy: row.strategy ?? undefined,
    requestedBy,
    createdAt: row.createdAt ?? startedAt,
    phase: phases[row.outcome],
    oldVersion: row.oldVersion || undefined,
    reason: row.reason ?? undefined,
    message: row.message ?? undefined,
    startedAt,
    finishedAt,
    checks: [],
    milestones: [],
    aborted: false,
    promoted: false,
    promoteUsed: false,
    deleted: true,
    held: false,
    attended: false,
  };
}
