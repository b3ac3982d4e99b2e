import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { collectionPath, type KubeObject } from '@rollcall/platform/kube/resource-client.ts';

interface Where {
  readonly connection: KubeConnection;
  readonly namespace: string;
}

/**
 * Lists objects as the API server has them, not from a cache.
 *
 * @param serviceName all without; else those whose `spec.serviceName` it is. The signs that
 * selectors give a meaning are escaped as k8s.io/apimachinery/pkg/fields has it.
 */
export async function listObjects<T extends KubeObject>(
  { connection, namespace }: Where,
  kind: ResourceKind<T>,
  serviceName?: string,
): Promise<readonly T[]> {
  const path = collectionPath(kind, namespace);
  const fieldSelector = `spec.serviceName=${serviceName?.replace(/[\\=,]/g, '\\$&')}`;
  const query = serviceName === undefined ? {} : { fieldSelector };
  return (await connection.request<{ readonly items: readonly T[] }>({ method: 'GET', path, query })).items;
}
