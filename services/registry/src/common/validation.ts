import { type AddressRule, isRefusedAddress } from '@rollcall/platform/outbound/address-rules.ts';
import { serviceNameFault, serviceUrlFault } from '@rollcall/platform/service-address.ts';
import type { ReportDetails, ServiceReport } from '../registrations/domain/registration.ts';
import { RegistryError } from './errors.ts';

const VERSION_MAX_LENGTH = 128;
const FORBIDDEN_IN_VERSION = /[\s\p{Z}\p{Cc}\uFEFF/]|[\uD800-\uDFFF]/u;
const DETAILS_MAX_BYTES = 16 * 1024;
const WORD_MAX_LENGTH = 64;
/** What terminals act on, or show other text by: as the command line replaces it. */
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

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
 * A service URL is absolute, http or https, has a host, and no credentials, query or fragment. An
 * address in it is one where services may be; to where a name leads is asked whenever somebody
 * connects.
 *
 * @throws RegistryError INVALID_SERVICE_URL. The URL is not repeated: it may hold a password.
 */
export function checkServiceUrl(url: string, mayConnect: AddressRule): void {
  const fault = serviceUrlFault(url);
  if (fault !== undefined) throw new RegistryError('INVALID_SERVICE_URL', `service_url ${fault}`);
  if (isRefusedAddress(new URL(url).hostname, mayConnect)) throw new RegistryError('INVALID_SERVICE_URL', NOT_ALLOWED);
}

/**
 * Checks what a service says of itself, which terminals show as it is.
 *
 * @throws RegistryError INVALID_REQUEST, saying which rule is broken.
 */
export function checkReport(report: ServiceReport): void {
  const [field, word] = report.kind === 'health' ? ['status', report.status] : ['event', report.event];
  if (word.length < 1 || word.length > WORD_MAX_LENGTH) {
    throw new RegistryError('INVALID_REQUEST', `${field} must have 1 to ${WORD_MAX_LENGTH} characters`);
  }
  if (CONTROL.test(word)) throw new RegistryError('INVALID_REQUEST', `${field} must not contain control characters`);
  checkDetails(report.details);
}

function checkDetails(details: ReportDetails): void {
  if (Buffer.byteLength(JSON.stringify(details)) > DETAILS_MAX_BYTES) {
    throw new RegistryError('INVALID_REQUEST', `details must have at most ${DETAILS_MAX_BYTES} bytes`);
  }
  const { version } = details;
  const fault = typeof version === 'string' ? versionFault(version) : undefined;
  if (fault !== undefined) throw new RegistryError('INVALID_REQUEST', `details.version must ${fault}`);
  if (textsIn(details).some((text) => CONTROL.test(text))) {
    throw new RegistryError('INVALID_REQUEST', 'details must not contain control characters, line feeds among them');
  }
}

/** All strings of a value of JSON, names of members included. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member)]);
}

/** What is wrong with a version, as the end of a sentence; undefined: nothing. */
export function versionFault(version: string): string | undefined {
  if (version === '') return 'not be empty';
  if (version.length > VERSION_MAX_LENGTH) return `have at most ${VERSION_MAX_LENGTH} characters`;
  if (version === '.' || version === '..') return "not be '.' or '..'";
  if (!FORBIDDEN_IN_VERSION.test(version)) return undefined;
  return "not contain '/', white space, control characters or broken surrogates";
}
