import { objectNameFor, serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { createInformer } from '@rollcall/platform/kube/informer.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import type { RollcallSubject, Stage } from './stage.ts';

/**
 * Who watches registrations expire from outside, and when he saw each of them do so:
 * `performance.now()` by the name of the custom resource.
 */
export interface ExpiryObserver extends AsyncDisposable {
  /** By the phase of the custom resource. */
  readonly inCluster: ReadonlyMap<string, number>;
  /** By the registry's event stream. */
  readonly inRegistry: ReadonlyMap<string, number>;
}

export async function observeExpiries(
  stage: Stage,
  namespace: string,
  registry: RollcallSubject,
): Promise<ExpiryObserver> {
  const inCluster = new Map<string, number>();
  const informer = createInformer({
    connection: stage.kube,
    kind: serviceRegistrationKind,
    namespace,
    clock: systemClock,
    log: createLogger('bench', 'silent'),
  });
  informer.onChange(({ type, object }) => {
    const { name } = object.metadata;
    if (type !== 'deleted' && object.status?.phase === 'Expired' && !inCluster.has(name)) {
      inCluster.set(name, performance.now());
    }
  });
  informer.start();
  await informer.synced;
  const inRegistry = new Map<string, number>();
  const closing = new AbortController();
  const url = `http://127.0.0.1:${registry.port}/api/v1/services/watch?instances=true`;
  const stream = await fetch(url, { signal: closing.signal });
  const following = followStream(stream, (name) => inRegistry.set(name, performance.now()));
  return {
    inCluster,
    inRegistry,
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      await Promise.all([informer.stop(), following]);
    },
  };
}

async function followStream(response: Response, onExpired: (name: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for await (const chunk of response.body ?? []) {
      const frames = (rest + decoder.decode(chunk, { stream: true })).split('\n\n');
      rest = frames.pop() ?? '';
      for (const frame of frames) {
        const data = /^event: expired\ndata: (.*)/m.exec(frame)?.[1];
        if (data === undefined) continue;
        const { service_name, instance_id } = JSON.parse(data) as { service_name: string; instance_id?: string };
        onExpired(objectNameFor(service_name, instance_id));
      }
    }
  } catch {
    // Closed by us, or by a registry that ended: what is missing shows in the counts.
  }
}
