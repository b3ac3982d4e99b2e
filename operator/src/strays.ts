import {
  apiClientKind,
  deliveryJobKind,
  deliveryPolicyKind,
  serviceRegistrationKind,
  webhookConfigKind,
} from '@rollcall/crds/kinds.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { KubeApiError } from '@rollcall/platform/kube/errors.ts';
import { listObjects } from '@rollcall/platform/kube/list.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { EventRecorder } from './runtime/events.ts';

const PERIOD_MS = 10_000;
/** Whoever is there for an object has written its status by then. */
const GRACE_MS = 5000;
/** So many of each kind and namespace are listed: one is enough to report. */
const LIST_LIMIT = 500;

const kinds: readonly ResourceKind<CustomObject>[] = [
  deliveryJobKind,
  deliveryPolicyKind,
  serviceRegistrationKind,
  webhookConfigKind,
  apiClientKind,
];

interface CustomObject extends KubeObject {
  readonly status?: {
    readonly conditions?: readonly unknown[];
    readonly stage?: string;
    readonly configuredAt?: string;
  };
}

export interface StraysDeps {
  readonly connection: KubeConnection;
  /** Where custom resources are read. */
  readonly namespace: string;
  /** Where Deployments may be delivered to, and so where strays are searched; none: everywhere. */
  readonly namespaces: readonly string[];
  readonly events: Pick<EventRecorder, 'record'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Logger;
}

/**
 * Reports custom resources in namespaces where nobody reads them by an Event, as far as this
 * process may list them.
 */
export function createStrays({ connection, namespace, namespaces, events, clock, log }: StraysDeps) {
  const stopping = new AbortController();
  /** By uid: each is reported once. */
  const reported = new Set<string>();
  let running: Promise<void> | undefined;

  /** None where this process may not list, or there is no such kind. */
  async function listIn(scope: string | undefined, kind: ResourceKind<CustomObject>): Promise<readonly CustomObject[]> {
    try {
      return await listObjects(connection, kind, { namespace: scope, query: { limit: String(LIST_LIMIT) } });
    } catch (error) {
      if (error instanceof KubeApiError) return [];
      throw error;
    }
  }

  async function check(): Promise<void> {
    const scopes = namespaces.length === 0 ? [undefined] : namespaces.filter((name) => name !== namespace);
    const lists = await Promise.all(scopes.flatMap((scope) => kinds.map((kind) => listIn(scope, kind))));
    const others = lists.flat().filter(({ metadata }) => metadata.namespace !== namespace);
    for (const stray of findStrays(others, clock.now())) {
      const { uid = '' } = stray.metadata;
      if (reported.has(uid)) continue;
      reported.add(uid);
      const message = `Ignored: Rollcall reads objects of the kind ${stray.kind} in the namespace ${namespace} only`;
      events.record({ regarding: stray, type: 'Warning', reason: 'WrongNamespace', message });
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await check().catch((err: unknown) => log.debug({ err }, 'other namespaces could not be listed'));
      await sleep(PERIOD_MS, stopping.signal);
    }
  }

  return {
    start: (): void => void (running ??= run()),
    async stop(): Promise<void> {
      stopping.abort();
      await running;
    },
  };
}

/**
 * What nobody has seen to, in namespaces where nobody has seen to anything: elsewhere another
 * installation is at home.
 */
export function findStrays(objects: readonly CustomObject[], now: Date): readonly CustomObject[] {
  const attended = new Set(objects.filter(isAttended).map(({ metadata }) => metadata.namespace));
  return objects.filter(({ metadata: { namespace, creationTimestamp = '' } }) => {
    return !attended.has(namespace) && now.getTime() - Date.parse(creationTimestamp) >= GRACE_MS;
  });
}

function isAttended({ status }: CustomObject): boolean {
  const { conditions = [], stage, configuredAt } = status ?? {};
  return conditions.length > 0 || stage !== undefined || configuredAt !== undefined;
}
