import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import { ownsBeyond } from '@rollcall/platform/kube/managed-fields.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import type { Change } from './decision.ts';

/** As whom this operator owns what it writes. */
export const FIELD_MANAGER = 'rollcall-operator';

/** Gives up what the operator owns of an object beyond `kept`; nothing where it owns no more. */
export function disown(kind: ResourceKind<KubeObject>, object: KubeObject, kept: readonly string[]): readonly Change[] {
  const owns = ownsBeyond(object.metadata.managedFields, FIELD_MANAGER, kept);
  return owns ? [{ action: 'disown', kind, object, kept }] : [];
}
