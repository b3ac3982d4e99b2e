import { type AddressRule, isRefusedAddress } from '@rollcall/platform/outbound/address-rules.ts';
import { pathPattern, serviceNameFault, serviceUrlFault } from '@rollcall/platform/service-address.ts';
import { CONTROL, INVISIBLE, isLongerThan } from '@rollcall/platform/text-rules.ts';
import type { Facts, ReportDetails, ServiceReport } from '../registrations/domain/registration.ts';
import { RegistryError } from './errors.ts';

const VERSION_MAX_LENGTH = 128;
const FORBIDDEN_IN_VERSION = new RegExp(String.raw`[/${INVISIBLE}]|[\ud800-\udfff]`, 'u');
const DETAILS_MAX_BYTES = 16 * 1024;
const DETAILS_MAX_DEPTH = 32;
const WORD_MAX_LENGTH = 64;
const CONTROLS = new RegExp(`[${CONTROL}]`, 'u');

/** {@link versionFault} as JSON Schema has it. */
export const versionRules = {
  minLength: 1,
  maxLength: VERSION_MAX_LENGTH,
  pattern: String.raw`^(?!\.{1,2}$)[^/${INVISIBLE}]+$`,
};
/** What services say of themselves, as JSON Schema has it. */
export const printableRules = { pattern: `^[^${CONTROL}]*$` };
export const detailNameRules = { ...printableRules, maxLength: 256 };
export const wordRules = { ...printableRules, minLength: 1, maxLength: WORD_MAX_LENGTH };

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

/** {@link isInstanceId} as JSON Schema has it. */
export const instanceIdRules = { minLength: 1, maxLength: 63, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' };

const DNS_LABEL = new RegExp(instanceIdRules.pattern, 'u');

/** Whether an instance may have this id; it may have none. */
export function isInstanceId(id: string | undefined): boolean {
  return id === undefined || (id.length <= instanceIdRules.maxLength && DNS_LABEL.test(id));
}

/** @throws RegistryError INVALID_INSTANCE_ID. */
export function checkInstanceId(id: string | undefined): void {
  if (isInstanceId(id)) return;
  const rule = 'must be a DNS label: 1 to 63 lower-case letters, digits and hyphens, no hyphen at either end';
  throw new RegistryError('INVALID_INSTANCE_ID', `instance_id ${rule}`);
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

const METADATA_MAX_ENTRIES = 32;
const METADATA_MAX_BYTES = 4096;
/** Of metadata, as JSON Schema has it. */
export const metadataKeyRules = { ...printableRules, minLength: 1, maxLength: 128 };
export const metadataValueRules = { ...printableRules, maxLength: 1024 };
export const zoneRules = { minLength: 1, maxLength: 63, pattern: '^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$' };
export const weightRules = { minimum: 1, maximum: 1000 };
export const graphqlPathRules = { minLength: 1, maxLength: 256, pattern: `^${pathPattern}$` };
const ZONE = new RegExp(zoneRules.pattern, 'u');
const GRAPHQL_PATH = new RegExp(graphqlPathRules.pattern, 'u');

/** @throws RegistryError INVALID_REQUEST, saying which rule is broken. */
export function checkFacts({ metadata = {}, zone, weight, graphqlPath }: Omit<Facts, 'url'>): void {
  checkMetadata(metadata);
  if (zone !== undefined && (zone.length > zoneRules.maxLength || !ZONE.test(zone))) {
    const rule = `have 1 to ${zoneRules.maxLength} letters, digits, '-', '_' and '.', a letter or digit at both ends`;
    throw new RegistryError('INVALID_REQUEST', `zone must ${rule}`);
  }
  if (weight !== undefined && !(Number.isInteger(weight) && weight >= 1 && weight <= weightRules.maximum)) {
    throw new RegistryError('INVALID_REQUEST', `weight must be a whole number from 1 to ${weightRules.maximum}`);
  }
  const isPath = graphqlPath === undefined || GRAPHQL_PATH.test(graphqlPath);
  if (!isPath || (graphqlPath?.length ?? 0) > graphqlPathRules.maxLength) {
    const rule =
      "be an absolute path without a query, '//' at its beginning and the segments '.' and '..', " +
      "with two digits after each '%'";
    throw new RegistryError(
      'INVALID_REQUEST',
      `graphql_path must ${rule}, of at most ${graphqlPathRules.maxLength} characters`,
    );
  }
}

function checkMetadata(metadata: Readonly<Record<string, string>>): void {
  const entries = Object.entries(metadata);
  if (entries.length > METADATA_MAX_ENTRIES) {
    throw new RegistryError('INVALID_REQUEST', `metadata must have at most ${METADATA_MAX_ENTRIES} entries`);
  }
  if (Buffer.byteLength(JSON.stringify(metadata)) > METADATA_MAX_BYTES) {
    throw new RegistryError('INVALID_REQUEST', `metadata must have at most ${METADATA_MAX_BYTES} bytes of JSON`);
  }
  for (const [key, value] of entries) {
    const isLong = isLongerThan(key, metadataKeyRules.maxLength) || isLongerThan(value, metadataValueRules.maxLength);
    if (key !== '' && !isLong && !CONTROLS.test(key) && !CONTROLS.test(value)) continue;
    const rule = 'names of 1 to 128 characters and values of at most 1024, without control characters';
    throw new RegistryError('INVALID_REQUEST', `metadata must have ${rule}`);
  }
}

/**
 * Checks what a service says of itself, which terminals show as it is.
 *
 * @throws RegistryError INVALID_REQUEST, saying which rule is broken.
 */
export function checkReport({ kind, word, details }: ServiceReport): void {
  const field = kind === 'health' ? 'status' : 'event';
  if (word === '' || isLongerThan(word, WORD_MAX_LENGTH)) {
    throw new RegistryError('INVALID_REQUEST', `${field} must have 1 to ${WORD_MAX_LENGTH} characters`);
  }
  if (CONTROLS.test(word)) throw new RegistryError('INVALID_REQUEST', `${field} must not contain control characters`);
  checkDetails(details);
}

function checkDetails(details: ReportDetails): void {
  checkDetail(details, 0);
  if (Buffer.byteLength(JSON.stringify(details)) > DETAILS_MAX_BYTES) {
    throw new RegistryError('INVALID_REQUEST', `details must have at most ${DETAILS_MAX_BYTES} bytes`);
  }
  const { version } = details;
  const fault = typeof version === 'string' ? versionFault(version) : undefined;
  if (fault !== undefined) throw new RegistryError('INVALID_REQUEST', `details.version must ${fault}`);
}

function checkDetail(value: unknown, depth: number): void {
  if (depth > DETAILS_MAX_DEPTH) {
    throw new RegistryError('INVALID_REQUEST', `details must be nested at most ${DETAILS_MAX_DEPTH} deep`);
  }
  if (typeof value === 'string') checkPrintable(value);
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (isLongerThan(name, detailNameRules.maxLength)) {
      const message = `details must have names of at most ${detailNameRules.maxLength} characters`;
      throw new RegistryError('INVALID_REQUEST', message);
    }
    checkPrintable(name);
    checkDetail(member, depth + 1);
  }
}

function checkPrintable(text: string): void {
  if (!CONTROLS.test(text)) return;
  throw new RegistryError('INVALID_REQUEST', 'details must not contain control characters, line feeds among them');
}

/** What is wrong with a version, as the end of a sentence; undefined: nothing. */
export function versionFault(version: string): string | undefined {
  if (version === '') return 'not be empty';
  if (isLongerThan(version, VERSION_MAX_LENGTH)) return `have at most ${VERSION_MAX_LENGTH} characters`;
  if (version === '.' || version === '..') return "not be '.' or '..'";
  if (!FORBIDDEN_IN_VERSION.test(version)) return undefined;
  return "not contain '/', white space, invisible or control characters or broken surrogates";
}
