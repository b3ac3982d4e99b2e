// What a service may be called and where it may be reached. One rule for everybody who asks the API
// server to store it: no looser than the validation in crds/serviceregistrations.yaml, so that
// people read sentences of ours.

import { INVISIBLE, isLongerThan } from './text-rules.ts';

/** As long as the custom resources allow. */
const NAME_MAX_LENGTH = 253;
/** As long as the custom resources allow any URL. */
export const URL_MAX_LENGTH = 2048;
const FORBIDDEN_IN_NAME = new RegExp(String.raw`[:${INVISIBLE}]|[\ud800-\udfff]`, 'u');
/** Servers and URL libraries fold such a segment of a path, or take its separators for their own, whatever is encoded of it. */
const NO_SEGMENT = /^\.{1,2}(?:;|$)|[/\\]/;
/** Stands for what could not be decoded: two names would become one. */
const REPLACEMENT_CHARACTER = '\uFFFD';
const FORBIDDEN_IN_URL = new RegExp(String.raw`[${INVISIBLE}]|[\ud800-\udfff]`, 'u');

/** {@link serviceNameFault} as JSON Schema has it; of text that is well-formed. */
export const serviceNameRules = {
  minLength: 1,
  maxLength: NAME_MAX_LENGTH,
  pattern: String.raw`^(?!\*$|\.{1,2}(?:;|$))[^:/\\\ufffd${INVISIBLE}]+$`,
};

const octet = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const ipv4 = String.raw`(?:${octet}\.){3}${octet}`;
const label = '[A-Za-z0-9_-]+';
/** The last label is no number: that would be an address in another notation (WHATWG URL, "ends in a number"). */
const lastLabel = '(?:(?:[1-9]|0[0-9])[0-9]*[A-Za-z_-]|0[A-WYZa-wyz_-]|[A-Za-z_-])[A-Za-z0-9_-]*';
export const portPattern = '(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';
const authority = String.raw`(?:\[${ipv6()}\]|(?:${ipv4}|(?:${label}\.)*${lastLabel})\.?)(?::(?:${portPattern})?)?`;

/** `IPv6address` of RFC 3986, section 3.2.2. */
function ipv6(): string {
  const group = '[0-9A-Fa-f]{1,4}';
  const last = `(?:${group}:${group}|${ipv4})`;
  const forms = [`(?:${group}:){6}${last}`];
  for (let after = 5; after >= 0; after -= 1) {
    forms.push(`${before(5 - after)}::(?:${group}:){${after}}${last}`);
  }
  forms.push(`${before(6)}::${group}`, `${before(7)}::`);
  return `(?:${forms.join('|')})`;

  function before(most: number): string {
    return most === 0 ? '' : `(?:(?:${group}:){0,${most - 1}}${group})?`;
  }
}

/** {@link httpUrlFault} as JSON Schema has it. */
export const httpUrlRules = {
  minLength: 1,
  maxLength: URL_MAX_LENGTH,
  pattern: String.raw`^[Hh][Tt][Tt][Pp][Ss]?://${authority}(?:[/?#][^${INVISIBLE}]*)?$`,
};

const dot = String.raw`(?:\.|%2[Ee])`;
const escapedNoDot = '%(?:[013-9A-Fa-f][0-9A-Fa-f]|2[0-9A-DFa-df])';

/** Of a path, and neither `.` nor `..`, said without looking ahead: not all that read it can. */
function segment(characters: string): string {
  const noDot = `(?:[${characters}]|${escapedNoDot})`;
  return `(?:(?:${dot}{0,2}${noDot}|${dot}{3})(?:${dot}|${noDot})*)`;
}

const pathSegment = segment("A-Za-z0-9_~!$&'()*+,;=:@-");

/**
 * For JSON Schema: a path below the URL of a service, which all read alike. Of what RFC 3986 allows in
 * one; `//` at its beginning would be read as a host.
 */
export const pathPattern = `/(?:${pathSegment}(?:/${pathSegment}?)*)?`;

/** {@link serviceUrlFault} as JSON Schema has it. */
export const serviceUrlRules = {
  ...httpUrlRules,
  pattern: String.raw`^[Hh][Tt][Tt][Pp][Ss]?://${authority}(?:/${segment(`^./?#%${INVISIBLE}`)}?)*$`,
};
const HTTP_URL = new RegExp(httpUrlRules.pattern, 'u');

/**
 * What is wrong with a name that a service is to be registered by (contract 1, "Service
 * registration"; lengths are ours), as the end of a sentence; undefined: nothing.
 */
export function serviceNameFault(name: string): string | undefined {
  if (name === '') return 'must not be empty';
  if (isLongerThan(name, NAME_MAX_LENGTH)) return `must have at most ${NAME_MAX_LENGTH} characters`;
  if (name === '*') return "must not be '*', which stands for all services";
  if (FORBIDDEN_IN_NAME.test(name)) {
    return "must not contain ':', white space, invisible or control characters or broken surrogates";
  }
  if (NO_SEGMENT.test(name)) return "must not be '.' or '..' nor contain '/' or a backslash, so that a URL can name it";
  if (name.includes(REPLACEMENT_CHARACTER))
    return 'must not contain U+FFFD, which stands for what could not be decoded';
  return undefined;
}

/**
 * What is wrong with the base URL of a service: as {@link httpUrlFault}, without query and fragment,
 * which the paths of calls would have to come before, and with a path that all read alike.
 */
export function serviceUrlFault(url: string): string | undefined {
  const fault = httpUrlFault(url);
  if (fault !== undefined) return fault;
  if (/[?#]/.test(url)) return 'must not have a query or a fragment';
  if (DOT_SEGMENT.test(url)) return "must not have the segments '.' and '..' in its path: calls would go elsewhere";
  if (/%(?![0-9A-Fa-f]{2})/.test(url)) return "must not have a '%' without two hexadecimal digits";
  return undefined;
}

const DOT_SEGMENT = /\/(?:\.|%2[Ee]){1,2}(?:\/|$)/;

/**
 * What is wrong with a URL that must be absolute, http or https, with a host and without
 * credentials, as the end of a sentence; undefined: nothing. The URL is not repeated: it may hold a
 * password.
 */
export function httpUrlFault(url: string): string | undefined {
  if (url === '') return 'must not be empty';
  if (isLongerThan(url, URL_MAX_LENGTH)) return `must have at most ${URL_MAX_LENGTH} characters`;
  if (FORBIDDEN_IN_URL.test(url))
    return 'must not contain white space, invisible or control characters or broken surrogates';
  if (!/^https?:\/\/[^/?#]/i.test(url)) return 'must be an absolute http or https URL';
  if (/^[^/?#]*\/\/[^/?#]*@/.test(url)) return 'must not carry credentials';
  if (/^[^/?#]*\/\/[^/?#]*:0+(?:[/?#]|$)/.test(url)) return 'must not have port 0';
  if (HTTP_URL.test(url) && URL.parse(url) !== null) return undefined;
  return 'must be an absolute http or https URL: a host of letters, digits and hyphens (Punycode for others), or an address, and a port';
}
