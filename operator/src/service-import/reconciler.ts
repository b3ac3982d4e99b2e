import type { Reconciler } from '../runtime/controller.ts';
import type { ImportObserver } from './observe.ts';
import { type ImportSnapshot, planImport } from './plan.ts';

/**
 * Keeps one registration for each annotated Service; see docs/internals.md, "Import Kubernetes
 * Services".
 */
export function importReconciler(observer: ImportObserver, concurrency: number): Reconciler<ImportSnapshot> {
  return {
    name: 'service-import',
    concurrency,
    keys: () => observer.serviceKeys(),
    observe: (key) => observer.observe(key),
    plan: planImport,
  };
}
