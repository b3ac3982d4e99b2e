import { type AddressRule, isRefusedAddress } from '@rollcall/platform/outbound/address-rules.ts';
import { httpUrlFault, serviceNameFault } from '@rollcall/platform/service-address.ts';
import type { ReportDetails } from '../registrations/domain/registration.ts';
import { RegistryError } from './errors.ts';

const DETAILS_MAX_BYTES = 16 * 1024;

const NOT_ALLOWED =
  'service_url must not have an address at which services may not be (loopback, link-local, metadata): name one that others reach';

/** Whether a registration may have this name. */
export function isServiceName(name: string): boolean {
  return serviceNameFault(name) === undefined;
}

/** @throws RegistryError INVALID_SERVICE_NAME, saying which rule is broken. */
export function checkServiceName(name: string): void {
  const fault = serviceNameFault(name);
  if (fault !== undefined) throw new RegistryError('INVALID_SERVICE_NAME', `service_name ${fault}`);
}

/**
 * A service URL is absolute, http or https, has a host and no credentials. An address in it
 * is one where services may be; to where a name leads is asked whenever somebody connects.
 *
 * @throws RegistryError INVALID_SERVICE_URL. The URL is not repeated: it may hold a password.
 */
export function checkServiceUrl(url: string, mayConnect: AddressRule): void {
  const fault = httpUrlFault(url);
  if (fault !== undefined) throw new RegistryError('INVALID_SERVICE_URL', `service_url ${fault}`);
  if (isRefusedAddress(new URL(url).hostname, mayConnect)) throw new RegistryError('INVALID_SERVICE_URL', NOT_ALLOWED);
}

/** @throws RegistryError INVALID_REQUEST when there is more of it than is kept. */
export function checkDetails(details: ReportDetails = {}): ReportDetails {
  if (Buffer.byteLength(JSON.stringify(details)) > DETAILS_MAX_BYTES) {
    throw new RegistryError('INVALID_REQUEST', `details must have at most ${DETAILS_MAX_BYTES} bytes`);
  }
  return details;
}
