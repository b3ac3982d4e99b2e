import { Buffer } from 'node:buffer';

/** Calls etcd's JSON gateway, which offers its gRPC methods below /v3. */
async function call(port: number, method: string, body: unknown): Promise<unknown> {
  const url = `http://127.0.0.1:${port}/v3/${method}`;
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`etcd ${method} answered ${response.status}: ${await response.text()}`);
  return response.json();
}

/**
 * Removes every revision but the current one.
 *
 * The API server goes on serving old revisions from its watch cache as long as it runs: only after
 * its restart does a watch that starts at an older resource version get 410 Gone.
 */
export async function compactEtcd(port: number): Promise<void> {
  const answer = await call(port, 'kv/range', { key: Buffer.from('/').toString('base64'), keys_only: true });
  const { header } = answer as { readonly header: { readonly revision: string } };
  await call(port, 'kv/compaction', { revision: header.revision, physical: true });
}
