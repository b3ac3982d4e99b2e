import { type ResourceQuota, resourceQuotaKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';

/** Kubernetes looks for new kinds every 30 s: as soon as it knows them, the next change counts. */
const UNCOUNTED_MS = 5000;
/** Somebody may install the definitions anew. */
const COUNTED_MS = 60_000;
/** The number of a kind that nobody has. */
const MARK = 'count/recount.rollcall.dev';

export interface QuotaDeps {
  readonly connection: KubeConnection;
  /** Where the ResourceQuota is. */
  readonly namespace: string;
  readonly name: string;
  readonly log: Logger;
}

/**
 * Has Kubernetes count a ResourceQuota of kinds that are as new as itself. Its controller counts
 * what it knows when the quota changes, and else every five minutes; until then the API server
 * refuses all objects of these kinds (decision 0086).
 */
export function createQuotaCounter({ connection, namespace, name, log }: QuotaDeps) {
  const client = resourceClient(connection, resourceQuotaKind, namespace);
  const stopping = new AbortController();
  let running: Promise<void> | undefined;

  /** @returns whether there is nothing left to do. */
  async function check(): Promise<boolean> {
    const quota = await client.find(name);
    const hard = quota && recount(quota);
    if (hard === undefined) return true;
    await client.patch(name, { spec: { hard } });
    log.info({ quota: name }, 'has the ResourceQuota counted');
    return false;
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const isDone = await check().catch((err: unknown) => {
        log.warn({ err, quota: name }, 'the ResourceQuota could not be read or changed');
        return true;
      });
      await sleep(isDone ? COUNTED_MS : UNCOUNTED_MS, stopping.signal);
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
 * What to change in `spec.hard`, undefined being nothing. A mark comes and goes, which limits
 * nothing and so may stay when the process ends in between.
 */
export function recount({ spec, status }: ResourceQuota): Readonly<Record<string, string | null>> | undefined {
  const { [MARK]: mark, ...hard } = spec?.hard ?? {};
  const isCounted = Object.keys(hard).every((resource) => Object.hasOwn(status?.used ?? {}, resource));
  if (mark !== undefined) return { [MARK]: null };
  return isCounted ? undefined : { [MARK]: '0' };
}
