import { KubeApiError } from '@rollcall/platform/kube/errors.ts';
import { RegistryError } from '../../common/errors.ts';
import { refusal } from '../../kube/refusal.ts';

/** How the API server calls the object as a whole. */
const WHOLE = '<nil>';

/**
 * What is refused as a whole is an instance, by the definition of a version before instances: during
 * `helm rollback`, or an upgrade that left the definitions out. Its program has done nothing wrong,
 * and is to try again.
 */
export function registrationRefusal(error: unknown): RegistryError {
  const causes = error instanceof KubeApiError ? (error.status.details?.causes ?? []) : [];
  if (causes.some(({ field }) => field === WHOLE)) {
    const message = 'The definition of ServiceRegistrations in the cluster is of another version; try again';
    return new RegistryError('STORE_UNAVAILABLE', message, { cause: error });
  }
  return refusal(error, 'the object', {
    'spec.url': 'INVALID_SERVICE_URL',
    'spec.serviceName': 'INVALID_SERVICE_NAME',
  });
}
