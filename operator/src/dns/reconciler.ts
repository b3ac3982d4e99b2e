import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { type EndpointSlice, SERVICE_LABEL, type Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import type { Reconciler } from '../runtime/controller.ts';
import type { EventChange } from '../runtime/decision.ts';
import { indexBy } from '../runtime/object-index.ts';
import { byRegistration, isMirrored } from './desired.ts';
import { isOwn } from './ownership.ts';
import { type DnsSnapshot, planDns } from './plan.ts';
import type { DnsZone } from './target.ts';

/** The API server forgets Events after an hour. */
const TOLD_MS = 3_600_000;

export interface DnsReconcilerDeps {
  readonly registrations: Informer<ServiceRegistration>;
  /** Of the namespace of the zone, as are the slices. */
  readonly services: Informer<Service>;
  readonly slices: Informer<EndpointSlice>;
  readonly zone: DnsZone;
  readonly registrationNamespace: string;
  readonly concurrency: number;
  readonly clock: Clock;
}

/**
 * Keeps Services and EndpointSlices of registered names; see docs/decisions/0303. Keys are names of
 * services. Must be made before the informers start.
 *
 * @param enqueue called with a name that may have to be looked at.
 */
export function dnsReconciler(deps: DnsReconcilerDeps, enqueue: (name: string) => void): Reconciler<DnsSnapshot> {
  const { registrations, services, slices, zone, registrationNamespace } = deps;
  const instances = indexBy([registrations], nameOf);
  const slicesOf = indexBy([slices], serviceOf);
  const told = createTold(deps.clock);
  registrations.onChange(({ type, object }) => {
    if (type === 'deleted') told.forget(object);
    enqueueAll(nameOf(object));
  });
  services.onChange(({ object }) => enqueueAll(object.metadata.name));
  slices.onChange(({ object }) => enqueueAll(serviceOf(object)));

  function enqueueAll(name: string | undefined): void {
    if (name !== undefined) enqueue(name);
  }

  const keyOf = (name: string) => `${zone.namespace}/${name}`;
  return {
    name: 'dns',
    concurrency: deps.concurrency,
    *keys() {
      yield* instances.keys();
      yield* slicesOf.keys();
      for (const service of services.store.values()) {
        if (isOwn(service, registrationNamespace)) yield service.metadata.name;
      }
    },
    observe: (serviceName) => ({
      serviceName,
      instances: instances.get(serviceName).filter(isMirrored).toSorted(byRegistration),
      service: services.store.get(keyOf(serviceName)),
      slices: slicesOf.get(serviceName),
      isSliceNameTaken: (name) => slices.store.get(keyOf(name)) !== undefined,
      zone,
      registrationNamespace,
      isTold: (event) => told.has(event),
    }),
    plan: planDns,
    onApplied(_snapshot, { changes }) {
      for (const change of changes) if (change.action === 'event') told.add(change);
    },
  };
}

function nameOf({ spec }: ServiceRegistration): string | undefined {
  return spec.source === 'API' ? spec.serviceName : undefined;
}

function serviceOf({ metadata }: EndpointSlice): string | undefined {
  return metadata.labels?.[SERVICE_LABEL];
}

/** The last Event of each registration: every join would repeat those of all others. */
function createTold(clock: Clock) {
  const last = new Map<string, { readonly text: string; readonly untilMs: number }>();
  return {
    has(event: EventChange): boolean {
      const known = last.get(event.regarding.metadata.uid ?? '');
      return known !== undefined && known.text === textOf(event) && clock.monotonicMs() < known.untilMs;
    },
    add(event: EventChange): void {
      last.set(event.regarding.metadata.uid ?? '', { text: textOf(event), untilMs: clock.monotonicMs() + TOLD_MS });
    },
    forget: ({ metadata }: ServiceRegistration): void => void last.delete(metadata.uid ?? ''),
  };
}

function textOf({ reason, message }: EventChange): string {
  return `${reason} ${message}`;
}
