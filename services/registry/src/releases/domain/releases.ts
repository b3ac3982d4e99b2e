import { isUpdate, latestVersion } from '@rollcall/platform/version-order.ts';
import { RegistryError } from '../../common/errors.ts';
import { checkServiceName } from '../../common/validation.ts';
import type { HistoryStore } from './history-store.ts';
import type { ReleaseStore } from './release.ts';

export interface ReleasesDeps {
  readonly releases: ReleaseStore;
  readonly history: Pick<HistoryStore, 'lastDelivered'>;
  /** Undefined: not registered; empty: registered without a version. */
  readonly currentVersion: (serviceName: string) => string | undefined;
}

export interface UpdateCheck {
  /** Empty when nobody knows it. */
  readonly currentVersion: string;
  /** The current one when no release was announced. */
  readonly latestVersion: string;
  readonly updateAvailable: boolean;
}

/**
 * Compares the version that runs with the announced ones (contract 1, `/webhooks/check-updates`).
 *
 * @throws RegistryError SERVICE_NOT_FOUND for a service without registration, releases and history.
 */
export async function checkForUpdate(deps: ReleasesDeps, serviceName: string): Promise<UpdateCheck> {
  checkServiceName(serviceName);
  const [versions, delivered] = await Promise.all([
    deps.releases.versions(serviceName),
    deps.history.lastDelivered(serviceName),
  ]);
  const registered = deps.currentVersion(serviceName);
  if (versions.length === 0 && delivered === undefined && registered === undefined) {
    throw new RegistryError('SERVICE_NOT_FOUND', `Service '${serviceName}' has no registration, release or history`);
  }
  const currentVersion = currentOf(registered, delivered);
  const latest = latestVersion(versions);
  return {
    currentVersion,
    latestVersion: latest ?? currentVersion,
    updateAvailable: latest !== undefined && isUpdate(currentVersion, latest),
  };
}

/**
 * The version that the registration has, else the one delivered last; empty when nobody knows it.
 */
export async function runningVersion(
  { currentVersion, history }: Pick<ReleasesDeps, 'currentVersion' | 'history'>,
  serviceName: string,
): Promise<string> {
  return currentOf(currentVersion(serviceName), await history.lastDelivered(serviceName));
}

function currentOf(registered: string | undefined, delivered: { readonly version: string } | undefined): string {
  return registered === undefined || registered === '' ? (delivered?.version ?? '') : registered;
}
