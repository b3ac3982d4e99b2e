import { type ResourceQuota, resourceQuotaKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';

/** Kubernetes polls for new kinds every 30 s: as soon as it knows them, the next change counts. */
const UNCOUNTED_MS = 5000;
/** What is not counted by then is of a kind that does not come. */
const GIVEN_UP_AFTER = 24;
/** Somebody may make the quota anew. */
const IDLE_MS = 60_000;
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

  /** How often in a row something was left to do. */
  let attempts = 0;

  async function check(): Promise<void> {
    const quota = await client.find(name);
    const hard = quota && recount(quota, attempts < GIVEN_UP_AFTER);
    attempts = quota === undefined || uncountedIn(quota).length === 0 ? 0 : attempts + 1;
    if (attempts === GIVEN_UP_AFTER && quota !== undefined) {
      log.warn({ quota: name, uncounted: uncountedIn(quota) }, 'Kubernetes does not count these limits of the quota');
    }
    if (hard === undefined) return;
    await client.patch(name, { spec: { hard } });
    log.info({ quota: name, change: hard }, 'changed the ResourceQuota, for Kubernetes to count it');
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await check().catch((err: unknown) => {
        attempts += 1;
        log.warn({ err, quota: name }, 'the ResourceQuota could not be read or changed');
      });
      const isBusy = attempts > 0 && attempts < GIVEN_UP_AFTER;
      await sleep(isBusy ? UNCOUNTED_MS : IDLE_MS, stopping.signal);
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

/** The limits that Kubernetes has not counted. */
function uncountedIn({ spec, status }: ResourceQuota): readonly string[] {
  return Object.keys(spec?.hard ?? {}).filter((key) => key !== MARK && !Object.hasOwn(status?.used ?? {}, key));
}

/**
 * What to change in `spec.hard`, undefined being nothing. A mark comes and goes, which limits
 * nothing and so may stay when the process ends in between.
 *
 * @param isWorthIt whether a mark may come.
 */
export function recount(quota: ResourceQuota, isWorthIt: boolean): Readonly<Record<string, string | null>> | undefined {
  if (quota.spec?.hard?.[MARK] !== undefined) return { [MARK]: null };
  return isWorthIt && uncountedIn(quota).length > 0 ? { [MARK]: '0' } : undefined;
}
