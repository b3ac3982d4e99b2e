import { setImmediate } from 'node:timers/promises';
import { systemClock } from '@rollcall/platform/clock.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { connectByFile } from '@rollcall/platform/kube/connection.ts';
import { createInformer } from '@rollcall/platform/kube/informer.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { rulesetOf } from './network-policies.ts';
import { namespaceKind, networkPolicyKind, policyPodKind } from './policy-objects.ts';

export interface EnforcementOptions {
  readonly kubeconfigPath: string;
  /** Loads a ruleset of nftables in the node's network namespace, as a whole. */
  readonly load: (ruleset: string) => Promise<void>;
  /** Called when a later ruleset cannot be loaded; the one before it stays in force. */
  readonly onFailure: (error: Error) => void;
}

export interface PolicyEnforcement extends AsyncDisposable {
  /**
   * Resolves once the policies that there are are in force; never when it is disposed of before.
   */
  start(): Promise<void>;
}

/**
 * Keeps the node's packet filter as the NetworkPolicies say, which the bridge of the pods takes no
 * notice of. A new pod is open from its start until its address is known, for less than a second.
 */
export async function createPolicyEnforcement(options: EnforcementOptions): Promise<PolicyEnforcement> {
  const { kubeconfigPath, load, onFailure } = options;
  const connection = await connectByFile(kubeconfigPath, {
    clock: systemClock,
    requestTimeoutMs: 20_000,
    maxSockets: 4,
  });
  const common = { connection, clock: systemClock, log: createLogger('network-policies', 'silent') };
  const policies = createInformer({ ...common, kind: networkPolicyKind });
  const pods = createInformer({ ...common, kind: policyPodKind });
  const namespaces = createInformer({ ...common, kind: namespaceKind });
  const informers = [policies, pods, namespaces] as const;

  let loaded = '';
  let hasChanged = false;
  let running: Promise<void> | undefined;
  const loadLatest = async (): Promise<void> => {
    try {
      while (hasChanged) {
        // What comes at the same time is one change.
        await setImmediate();
        hasChanged = false;
        const ruleset = rulesetOf({
          policies: [...policies.store.values()],
          pods: [...pods.store.values()],
          namespaces: [...namespaces.store.values()],
        });
        if (ruleset === loaded) continue;
        await load(ruleset);
        loaded = ruleset;
      }
    } finally {
      running = undefined;
    }
  };
  const update = (): Promise<void> => {
    hasChanged = true;
    running ??= loadLatest();
    return running;
  };
  const onChange = (): void => {
    update().catch((error: unknown) => onFailure(error instanceof Error ? error : new Error(errorMessage(error))));
  };

  return {
    async start() {
      for (const informer of informers) informer.start();
      await Promise.all(informers.map(({ synced }) => synced));
      for (const informer of informers) informer.onChange(onChange);
      await update();
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(informers.map((informer) => informer.stop()));
      await running?.catch(() => undefined);
      await connection.close();
    },
  };
}
