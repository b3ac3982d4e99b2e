import { RegistryError } from '../../common/errors.ts';
import { checkServiceName } from '../../common/validation.ts';
import { ChangedMeanwhileError, type Composition, type RegistrationStore } from './registration.ts';
import { livingInstances } from './registrations.ts';

/** By which federation is registered. */
const FEDERATION = 'federation';

/** What federation tells of the GraphQL of a service. */
export interface CompositionReport extends Composition {
  readonly serviceName: string;
  /** Who tells; undefined where nobody has to show that. */
  readonly subject: string | undefined;
}

/**
 * Keeps with each instance of a service whether its schema is in the graph.
 *
 * @throws RegistryError INVALID_SERVICE_NAME, SERVICE_NOT_FOUND; NAME_OWNED_BY_ANOTHER for whoever has
 * not registered federation.
 */
export async function reportComposition(
  store: Pick<RegistrationStore, 'instancesOf' | 'reportComposition'>,
  { serviceName, subject, ...composition }: CompositionReport,
): Promise<void> {
  checkServiceName(serviceName);
  if (subject !== undefined && !livingInstances(store, FEDERATION).some(({ owner }) => owner === subject))
    throw new RegistryError('NAME_OWNED_BY_ANOTHER', `Only who has registered '${FEDERATION}' tells of compositions`);
  const instances = livingInstances(store, serviceName).filter(({ capabilities }) => capabilities.includes('graphql'));
  if (instances.length === 0)
    throw new RegistryError('SERVICE_NOT_FOUND', `No service '${serviceName}' with GraphQL is in the registry`);
  await Promise.all(
    instances.map((instance) =>
      store.reportComposition(instance, composition).catch((error: unknown) => {
        // It is gone, and federation tells of the next one anew.
        if (!(error instanceof ChangedMeanwhileError)) throw error;
      }),
    ),
  );
}
