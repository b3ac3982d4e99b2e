// What a service may be called and where it may be reached. One rule for everybody who asks the API
// server to store it: no looser than the validation in crds/serviceregistrations.yaml, so that
// people read sentences of ours.

/** As long as the custom resources allow. */
const NAME_MAX_LENGTH = 253;
/** As long as the custom resources allow any URL. */
export const URL_MAX_LENGTH = 2048;
const FORBIDDEN_IN_NAME = /[:\s\p{Z}\p{Cc}\uFEFF]|[\uD800-\uDFFF]/u;
/**
 * Servers and URL libraries fold such a segment of a path, or read its separators as their own,
 * whatever is encoded of it.
 */
const NO_SEGMENT = /^\.{1,2}(?:;|$)|[/\\]/;
/** Stands for what could not be decoded: two names would become one. */
const REPLACEMENT_CHARACTER = '\uFFFD';
const FORBIDDEN_IN_URL = /[\s\p{Z}\p{Cc}\uFEFF]|[\uD800-\uDFFF]/u;

/**
 * What is wrong with a name that a service is to be registered by (contract 1, "Service
 * registration"; lengths are ours), as the end of a sentence; undefined: nothing.
 */
export function serviceNameFault(name: string): string | undefined {
  if (name === '') return 'must not be empty';
  if (name.length > NAME_MAX_LENGTH) return `must have at most ${NAME_MAX_LENGTH} characters`;
  if (name === '*') return "must not be '*', which stands for all services";
  if (FORBIDDEN_IN_NAME.test(name)) {
    return "must not contain ':', white space, control characters or broken surrogates";
  }
  if (NO_SEGMENT.test(name)) return "must not be '.' or '..' nor contain '/' or a backslash, so that a URL can name it";
  if (name.includes(REPLACEMENT_CHARACTER))
    return 'must not contain U+FFFD, which stands for what could not be decoded';
  return undefined;
}

/**
 * What is wrong with the base URL of a service: as {@link httpUrlFault}, and without query and
 * fragment, which the paths of calls would have to come before.
 */
export function serviceUrlFault(url: string): string | undefined {
  return httpUrlFault(url) ?? (/[?#]/.test(url) ? 'must not have a query or a fragment' : undefined);
}

/**
 * What is wrong with a URL that must be absolute, http or https, with a host and without
 * credentials, as the end of a sentence; undefined: nothing. The URL is not repeated: it may hold a
 * password.
 */
export function httpUrlFault(url: string): string | undefined {
  if (url === '') return 'must not be empty';
  if (url.length > URL_MAX_LENGTH) return `must have at most ${URL_MAX_LENGTH} characters`;
  if (FORBIDDEN_IN_URL.test(url)) return 'must not contain white space, control characters or broken surrogates';
  if (!/^https?:\/\/[^/?#]/i.test(url)) return 'must be an absolute http or https URL';
  // What browsers repair silently, the custom resource's validation refuses.
  if (/^[^/?#]*\/\/[^/?#]*[\\%]/.test(url)) return 'must not have a backslash or percent sign in its host';
  const parsed = URL.parse(url);
  if (parsed === null || parsed.hostname === '') return 'must be an absolute http or https URL';
  if (/^[^/?#]*\/\/[^/?#]*@/.test(url)) return 'must not carry credentials';
  if (parsed.port === '0') return 'must not have port 0';
  return undefined;
}
