import { type ResourceQuota, resourceQuotaKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { backoffMs, sleep } from '@rollcall/platform/retry.ts';

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

  /** So often the quota was changed, and is not counted. */
  let changes = 0;
  let failures = 0;

  /** @returns how long nothing is to be done, in ms. */
  async function check(): Promise<number> {
    const quota = await client.find(name);
    const uncounted = quota === undefined ? [] : uncountedIn(quota);
    if (uncounted.length === 0) changes = 0;
    const hard = quota && recount(quota, changes < GIVEN_UP_AFTER);
    if (hard === undefined) return IDLE_MS;
    await client.patch(name, { spec: { hard } });
    log.info({ quota: name, change: hard }, 'changed the ResourceQuota, for Kubernetes to count it');
    changes += 1;
    if (changes === GIVEN_UP_AFTER) {
      log.warn({ quota: name, uncounted }, 'Kubernetes does not count these limits of the quota');
    }
    return UNCOUNTED_MS;
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        const waitMs = await check();
        failures = 0;
        await sleep(waitMs, stopping.signal);
      } catch (err) {
        log.warn({ err, quota: name }, 'the ResourceQuota could not be read or changed');
        await sleep(backoffMs(failures, { baseMs: UNCOUNTED_MS, maxMs: IDLE_MS }), stopping.signal);
        failures += 1;
      }
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
