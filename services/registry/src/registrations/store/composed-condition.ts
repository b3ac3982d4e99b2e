import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import { setCondition } from '@rollcall/platform/kube/conditions.ts';
import type { Composition } from '../domain/registration.ts';

const TYPE = 'Composed';

/** In CamelCase, as reasons are. */
const REASONS: Readonly<Record<Composition['status'], string>> = {
  composed: 'InGraph',
  held: 'Held',
  unreachable: 'Unreachable',
  removed: 'Removed',
};

/**
 * Pure. The condition of a registration by what federation told.
 *
 * @returns undefined where it has it already.
 */
export function composedCondition(
  { metadata, status }: ServiceRegistration,
  { status: composition, message }: Composition,
  now: Date,
) {
  const known = status?.conditions?.filter(({ type }) => type === TYPE) ?? [];
  const next = {
    type: TYPE,
    status: composition === 'composed' ? ('True' as const) : ('False' as const),
    reason: REASONS[composition],
    message,
    observedGeneration: metadata.generation ?? 0,
  };
  const [condition] = setCondition(known, next, now.toISOString());
  const [present] = known;
  const isKnown = present?.reason === next.reason && present.message === message;
  return isKnown ? undefined : condition;
}
