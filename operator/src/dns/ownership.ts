import { labels } from '@rollcall/crds/kinds.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';

const MANAGED_BY = 'app.kubernetes.io/managed-by';

/** The labels by which an object is this installation's. */
export function ownLabels(registrationNamespace: string): Readonly<Record<string, string>> {
  return { [MANAGED_BY]: 'rollcall', [labels.mirroredFrom]: registrationNamespace };
}

/** Whether this installation may change the object; who removes a label has it for themselves. */
export function isOwn({ metadata }: KubeObject, registrationNamespace: string): boolean {
  return hasLabels(metadata.labels, ownLabels(registrationNamespace));
}

/** Whether all these labels are among those of an object. */
export function hasLabels(
  found: Readonly<Record<string, string>> | undefined,
  wanted: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(wanted).every(([name, value]) => found?.[name] === value);
}
