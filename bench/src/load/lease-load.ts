import { annotations } from '@rollcall/crds/kinds.ts';
import { accessFromFile } from '@rollcall/platform/kube/access.ts';
import { leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { microTime } from '@rollcall/platform/kube/micro-time.ts';
import { collectionPath } from '@rollcall/platform/kube/resource-client.ts';
import { Pool } from 'undici';
import { runAtPace } from './pace.ts';
import { type LeaseTask, type LoadResult, objectOf } from './tasks.ts';

const headers = { accept: 'application/json', 'content-type': 'application/merge-patch+json' };

/** Runs a {@link LeaseTask}. */
export async function runLeaseLoad(task: LeaseTask): Promise<LoadResult> {
  const access = await accessFromFile(task.kubeconfigPath);
  const { tls } = await access.readCredentials(false);
  const pool = new Pool(access.server, { connections: task.connections, connect: { ...tls }, allowH2: false });
  const collection = collectionPath(leaseKind, task.namespace);
  const send = async (index: number): Promise<number | 'none'> => {
    const path = `${collection}/${objectOf(task.names, index % task.names.count)}`;
    try {
      const response = await pool.request({ method: 'PATCH', path, headers, body: renewal() });
      await response.body.dump();
      return response.statusCode;
    } catch {
      return 'none';
    }
  };
  try {
    return await runAtPace(
      task.pace,
      Array.from({ length: task.connections }, () => send),
    );
  } finally {
    await pool.close();
  }
}

/** Byte for byte what the registry writes for a heartbeat that is due. */
function renewal(): string {
  const renewTime = microTime(new Date());
  return JSON.stringify({ metadata: { annotations: { [annotations.heartbeatAgeMs]: '0' } }, spec: { renewTime } });
}
