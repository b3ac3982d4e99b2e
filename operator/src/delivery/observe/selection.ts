import type { Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import { HASH_LABEL } from '../workload/names.ts';

type Labels = Readonly<Record<string, string>>;

/** What the user selects by: the selector without our pin. */
function unpinned(selector: Labels): Labels {
  const { [HASH_LABEL]: _, ...rest } = selector;
  return rest;
}

/**
 * Whether pods with these labels get traffic of the Service, or would without our pin. One without
 * a selector has no pods of its own.
 */
export function selects({ spec }: Service, podLabels: Labels): boolean {
  const wanted = Object.entries(unpinned(spec?.selector ?? {}));
  return wanted.length > 0 && wanted.every(([name, value]) => podLabels[name] === value);
}
