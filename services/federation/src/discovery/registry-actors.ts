import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import { createCompositionReports } from './composition-reports.ts';
import { createDiscovery, type Discovery, type DiscoveryDeps } from './discovery.ts';

export interface RegistryActorsDeps extends Omit<DiscoveryDeps, 'registries' | 'store'> {
  /** Base URLs; undefined: federation knows of no registry. */
  readonly registries: readonly string[] | undefined;
  readonly store: DiscoveryDeps['store'] & Parameters<typeof createCompositionReports>[0]['store'];
}

/** What follows the registry, and what tells it how services stand with the graph. */
export function createRegistryActors({ registries, ...deps }: RegistryActorsDeps): {
  readonly sighting: Discovery['sighting'];
  readonly actors: readonly Actor[];
} {
  if (registries === undefined) return { sighting: () => undefined, actors: [] };
  const discovery = createDiscovery({ registries, ...deps });
  const { sighting } = discovery;
  const registry = createRegistryClient({ servers: registries });
  return { sighting, actors: [discovery, createCompositionReports({ registry, sighting, ...deps })] };
}
