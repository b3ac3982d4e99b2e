import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { KubeConnection } from './connection.ts';
import { collectionPath, type KubeObject } from './resource-client.ts';

interface ListScope {
  /** All namespaces when absent. */
  readonly namespace?: string | undefined;
  readonly query?: { readonly labelSelector?: string; readonly fieldSelector?: string; readonly limit?: string };
  readonly signal?: AbortSignal;
}

/**
 * Lists objects as the API server has them: what no informer keeps, or where its copy may be too
 * old.
 *
 * @throws as the connection.
 */
export async function listObjects<T extends KubeObject>(
  connection: KubeConnection,
  kind: ResourceKind<T>,
  { namespace, ...rest }: ListScope,
): Promise<readonly T[]> {
  const path = collectionPath(kind, namespace);
  const { items } = await connection.request<{ readonly items: readonly T[] }>({ method: 'GET', path, ...rest });
  // Lists leave out what all of their items have in common.
  return items.map((item) => ({ ...item, apiVersion: kind.apiVersion, kind: kind.kind }));
}

/**
 * A selector of fields. The signs that selectors give a meaning are escaped as
 * k8s.io/apimachinery/pkg/fields has it.
 */
export function fieldSelector(path: string, value: string): string {
  return `${path}=${value.replace(/[\\=,]/g, '\\$&')}`;
}
