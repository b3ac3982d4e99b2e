import { RegistryError } from './errors.ts';

/** As long as the custom resource allows (`spec.serviceName`). */
const NAME_MAX_LENGTH = 253;
/** As long as the custom resource allows (`spec.url`). */
const URL_MAX_LENGTH = 2048;
const FORBIDDEN_IN_NAME = /[:\s\p{Z}\p{Cc}\uFEFF]|[\uD800-\uDFFF]/u;
const FORBIDDEN_IN_URL = /[\s\p{Z}\p{Cc}\uFEFF]/u;

/** Whether a registration may have this name (contract 1, "Service registration"; lengths are ours). */
export function isServiceName(name: string): boolean {
  return name.length > 0 && name.length <= NAME_MAX_LENGTH && name !== '*' && !FORBIDDEN_IN_NAME.test(name);
}

/** @throws RegistryError INVALID_SERVICE_NAME, saying which rule is broken. */
export function checkServiceName(name: string): void {
  if (isServiceName(name)) return;
  throw new RegistryError('INVALID_SERVICE_NAME', nameFault(name));
}

function nameFault(name: string): string {
  if (name === '') return 'service_name must not be empty';
  if (name.length > NAME_MAX_LENGTH) return `service_name must have at most ${NAME_MAX_LENGTH} characters`;
  if (name === '*') return "service_name '*' stands for all services and cannot be registered";
  return "service_name must not contain ':', white space, control characters or broken surrogates";
}

/**
 * A service URL is absolute, http or https, has a host and no credentials.
 *
 * @throws RegistryError INVALID_SERVICE_URL. The URL is not repeated: it may hold a password.
 */
export function checkServiceUrl(url: string): void {
  const fault = urlFault(url);
  if (fault !== undefined) throw new RegistryError('INVALID_SERVICE_URL', `service_url ${fault}`);
}

/** What is wrong with a URL that must be absolute, http or https, with a host and without credentials; undefined: nothing. */
export function urlFault(url: string): string | undefined {
  if (url === '') return 'must not be empty';
  if (url.length > URL_MAX_LENGTH) return `must have at most ${URL_MAX_LENGTH} characters`;
  if (FORBIDDEN_IN_URL.test(url)) return 'must not contain white space or control characters';
  if (!/^https?:\/\/[^/?#]/i.test(url)) return 'must be an absolute http or https URL';
  // What browsers repair silently, the custom resource's validation refuses.
  if (/^[^/?#]*\/\/[^/?#]*[\\%]/.test(url)) return 'must not have a backslash or percent sign in its host';
  const parsed = URL.parse(url);
  if (parsed === null || parsed.hostname === '') return 'must be an absolute http or https URL';
  if (/^[^/?#]*\/\/[^/?#]*@/.test(url)) return 'must not carry credentials';
  return undefined;
}
