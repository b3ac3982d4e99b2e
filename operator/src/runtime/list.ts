import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { collectionPath, type KubeObject } from '@rollcall/platform/kube/resource-client.ts';

interface ListScope {
  /** All namespaces when absent. */
  readonly namespace?: string | undefined;
  readonly query?: { readonly labelSelector?: string; readonly limit?: string };
  readonly signal?: AbortSignal;
}

/** Lists what no informer keeps. @throws as the API server's client. */
export async function list<T extends KubeObject>(
  connection: KubeConnection,
  kind: ResourceKind<T>,
  { namespace, ...rest }: ListScope,
): Promise<readonly T[]> {
  const path = collectionPath(kind, namespace);
  const { items } = await connection.request<{ readonly items: readonly T[] }>({ method: 'GET', path, ...rest });
  // Lists leave out what all of their items have in common.
  return items.map((item) => ({ ...item, apiVersion: kind.apiVersion, kind: kind.kind }));
}
