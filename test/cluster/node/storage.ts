import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';

/** For as many claims, each once: nobody empties a volume that has been released. */
const VOLUMES = 24;
const CLASS = 'standard';

export interface StorageOptions {
  /** Where the volumes' directories are to be. */
  readonly directory: string;
  readonly nodeName: string;
}

/**
 * Makes the node's volumes.
 *
 * @returns the manifest of the default class that they are of, for `kubectl apply`.
 */
export async function createStorage({ directory, nodeName }: StorageOptions): Promise<string> {
  const names = Array.from({ length: VOLUMES }, (_, index) => `local-${index}`);
  for (const name of names) {
    const path = join(directory, name);
    await mkdir(path, { recursive: true });
    // Whatever user a pod has may write.
    await chmod(path, 0o777);
  }
  const items = [storageClass(), ...names.map((name) => volume(name, join(directory, name), nodeName))];
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}

function storageClass(): object {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: CLASS, annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    provisioner: 'kubernetes.io/no-provisioner',
    volumeBindingMode: 'WaitForFirstConsumer',
  };
}

function volume(name: string, path: string, nodeName: string): object {
  const isNode = { key: 'kubernetes.io/hostname', operator: 'In', values: [nodeName] };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      capacity: { storage: '20Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: CLASS,
      local: { path },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [isNode] }] } },
    },
  };
}
