import { isDeepStrictEqual } from 'node:util';
import { annotations, deliveryPolicyKind, isLabelValue, labels } from '@rollcall/crds/kinds.ts';
import type { DeliveryPolicy } from '@rollcall/crds/types.gen.ts';
import { type Condition, setCondition } from '@rollcall/platform/kube/conditions.ts';
import type { Decision } from '../runtime/decision.ts';

/** The condition that says whether jobs use a policy. */
export interface PolicySnapshot {
  readonly policy: DeliveryPolicy;
  /** The one that counts of those for the same service. */
  readonly effective: DeliveryPolicy;
  /** Whether a Deployment runs the service, in a namespace that is delivered to. */
  readonly hasDeployment: boolean;
  readonly now: Date;
}

/** Keeps the condition `Used`. */
export function planPolicy(snapshot: PolicySnapshot): Decision {
  const { policy, now } = snapshot;
  const observedGeneration = policy.metadata.generation ?? 0;
  const known = policy.status?.conditions?.filter(({ type }) => type === 'Used') ?? [];
  const used = { type: 'Used', observedGeneration, ...usageOf(snapshot) };
  const conditions = setCondition(known, used, now.toISOString());
  if (isDeepStrictEqual(known, conditions)) return { changes: [] };
  const status = { observedGeneration, conditions };
  return { changes: [{ action: 'status', kind: deliveryPolicyKind, object: policy, status }] };
}

function usageOf(snapshot: PolicySnapshot): Pick<Condition, 'status' | 'reason' | 'message'> {
  const { policy, effective, hasDeployment } = snapshot;
  const { serviceName } = policy.spec;
  if (effective.metadata.name !== policy.metadata.name) {
    const message = `The older policy ${effective.metadata.name} is for the same service: delete one of the two`;
    return { status: 'False', reason: 'OlderPolicyCounts', message };
  }
  if (serviceName === '*') {
    return { status: 'True', reason: 'Used', message: 'Jobs of services without a policy of their own go by it' };
  }
  if (hasDeployment) return { status: 'True', reason: 'Used', message: `Jobs of ${serviceName} go by it` };
  if (serviceName.includes('*')) {
    const message = `${serviceName} is no pattern: name one service, or * for all that have no policy of their own`;
    return { status: 'False', reason: 'NoPattern', message };
  }
  const mark = isLabelValue(serviceName) ? serviceName : `true, with the annotation ${annotations.serviceName}`;
  const message = `No Deployment that can be delivered to is labelled ${labels.service}=${mark}`;
  return { status: 'False', reason: 'NoDeployment', message };
}
