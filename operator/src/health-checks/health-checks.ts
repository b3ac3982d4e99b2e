import { isDeepStrictEqual } from 'node:util';
import { annotations } from '@rollcall/crds/kinds.ts';
import type { HealthCheckStatus, ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { objectKey } from '@rollcall/platform/kube/store.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { HealthCheckMetrics } from './health-check-metrics.ts';
import { type CheckState, nextState, type Outcome } from './next-state.ts';
import type { Prober, Target } from './probe.ts';
import { createRounds } from './rounds.ts';

export interface HealthChecksDeps {
  readonly registrations: Informer<ServiceRegistration>;
  readonly prober: Prober;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: HealthCheckMetrics;
  /** {@link HealthChecks.statusOf} of a registration has changed. */
  readonly onChange: (key: string) => void;
}

/** The checks that registrations declare, made while this process leads. */
export interface HealthChecks {
  start(): void;
  /** Resolves when none is under way. */
  stop(): Promise<void>;
  /** What the status of a registration is to say of its check: what it says, until that changes. */
  statusOf(registration: ServiceRegistration): HealthCheckStatus | undefined;
}

/** A check as it was declared. Another one takes its place when that changes. */
interface DeclaredCheck extends Target {
  readonly uid: string | undefined;
  readonly owner: string;
  readonly intervalMs: number;
  /** Its status is undefined until this process has changed it: what others wrote counts, however late it comes. */
  state: CheckState;
}

export function createHealthChecks(deps: HealthChecksDeps): HealthChecks {
  const { registrations, prober, clock, log, metrics } = deps;
  const rounds = createRounds<DeclaredCheck>(clock, make);
  const stopping = new AbortController();
  let isStarted = false;

  async function make(key: string, declared: DeclaredCheck, lateMs: number): Promise<void> {
    const beganMs = clock.monotonicMs();
    const outcome = await probe(key, declared);
    if (stopping.signal.aborted) return;
    metrics.made(declared.check.type, outcome, { lateMs, tookMs: clock.monotonicMs() - beganMs });
    if (outcome !== undefined && rounds.get(key) === declared) settle(key, declared, outcome);
  }

  async function probe(key: string, declared: DeclaredCheck): Promise<Outcome | undefined> {
    try {
      return await prober.probe(declared, stopping.signal);
    } catch (err) {
      if (!stopping.signal.aborted) log.error({ err, key }, 'health check failed for a reason of ours');
      return undefined;
    }
  }

  function settle(key: string, declared: DeclaredCheck, outcome: Outcome): void {
    const { streak, status = registrations.store.get(key)?.status?.check } = declared.state;
    const next = nextState({ status, streak }, outcome, { check: declared.check, now: clock.now() });
    if (next.status === status) {
      declared.state = { ...declared.state, streak: next.streak };
      return;
    }
    declared.state = next;
    deps.onChange(key);
  }

  function follow(registration: ServiceRegistration): void {
    const key = objectKey(registration);
    const known = rounds.get(key);
    const next = declaredBy(registration, known);
    if (next === undefined) rounds.delete(key);
    else if (next !== known) rounds.set(key, next);
  }

  registrations.onChange(({ type, object }) => {
    if (!isStarted) return;
    if (type === 'deleted') rounds.delete(objectKey(object));
    else follow(object);
  });

  return {
    start() {
      isStarted = true;
      for (const registration of registrations.store.values()) follow(registration);
    },
    async stop() {
      isStarted = false;
      stopping.abort();
      await rounds.stop();
      await prober.close();
    },
    statusOf(registration) {
      if (registration.spec.check === undefined) return undefined;
      const known = rounds.get(objectKey(registration));
      const own = known?.uid === registration.metadata.uid ? known?.state.status : undefined;
      return own ?? registration.status?.check;
    },
  };
}

/** @returns the known one where it is still that; undefined where there is nothing to be checked. */
function declaredBy(
  { metadata, spec, status }: ServiceRegistration,
  known: DeclaredCheck | undefined,
): DeclaredCheck | undefined {
  const { url, check, serviceName } = spec;
  const isOver = metadata.deletionTimestamp !== undefined || status?.phase === 'Expired';
  if (check === undefined || isOver) return undefined;
  const { uid } = metadata;
  const isSameLife = known?.uid === uid;
  if (isSameLife && known?.url === url && isDeepStrictEqual(known.check, check)) return known;
  const state = { status: isSameLife ? known?.state.status : undefined, streak: undefined };
  const owner = metadata.annotations?.[annotations.owner] ?? serviceName;
  return { url, check, uid, owner, intervalMs: check.intervalSeconds * 1000, state };
}
