import { Buffer } from 'node:buffer';

/** Calls etcd's JSON gateway, which offers its gRPC methods below /v3. */
async function call(endpoint: string, method: string, body: unknown): Promise<unknown> {
  const response = await fetch(`${endpoint}/v3/${method}`, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`etcd ${method} answered ${response.status}: ${await response.text()}`);
  return response.json();
}

/**
 * Removes every revision but the current one.
 *
 * The API server goes on serving old revisions from its watch cache as long as it runs: only after
 * its restart does a watch that starts at an older resource version get 410 Gone.
 */
export async function compactEtcd(endpoint: string): Promise<void> {
  const answer = await call(endpoint, 'kv/range', { key: Buffer.from('/').toString('base64'), keys_only: true });
  const revision = revisionOf(answer);
  await call(endpoint, 'kv/compaction', { revision, physical: true });
}

function revisionOf(answer: unknown): string {
  if (typeof answer === 'object' && answer !== null && 'header' in answer) {
    const { header } = answer;
    if (typeof header === 'object' && header !== null && 'revision' in header && typeof header.revision === 'string') {
      return header.revision;
    }
  }
  throw new Error('etcd answered without a revision');
}
