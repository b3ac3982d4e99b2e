import { domainToASCII } from 'node:url';
import { CONTROL, INVISIBLE } from './text-rules.ts';

/** What untrusted text means, or what is wrong with it, in words for its sender. */
export type Parsed<T> = { readonly value: T } | { readonly fault: string };

/** Of RFC 5321, section 4.5.3.1, and its erratum 1690: octets. */
const LONGEST_LOCAL_PART = 64;
const LONGEST_ADDRESS = 254;

/** A dot-atom of RFC 5322, section 3.2.3: neither quotes nor comments, white space or lists. */
const LOCAL_PART = /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*$/;
const DOMAIN_LABEL = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/;
/** In ASCII as domains have it, and whatever else there is in Unicode. */
const DOMAIN_TEXT = /^[a-z\d.\-\u{80}-\u{10ffff}]+$/iu;
const HIDDEN = new RegExp(`[${CONTROL}${INVISIBLE}]`, 'u');

/**
 * Reads one mail address, such as `ana@example.com`. Everything that a mail library could read as
 * more than one, or as a name or a comment, is a fault, and so are line breaks.
 *
 * @returns it with its domain in lower case and in ASCII (RFC 5891).
 */
export function parseEmailAddress(text: string): Parsed<string> {
  if (text.length > LONGEST_ADDRESS) return { fault: `must have at most ${LONGEST_ADDRESS} characters` };
  if (HIDDEN.test(text)) return { fault: 'must have no white space, control or invisible characters' };
  const at = text.lastIndexOf('@');
  const localPart = text.slice(0, Math.max(0, at));
  if (localPart.length > LONGEST_LOCAL_PART) {
    return { fault: `must have at most ${LONGEST_LOCAL_PART} characters before the @` };
  }
  if (!LOCAL_PART.test(localPart)) return { fault: 'must be one address, such as ana@example.com' };
  const domain = asciiDomain(text.slice(at + 1));
  if (domain === undefined) return { fault: 'must have the name of a mail domain after the @' };
  const address = `${localPart}@${domain}`;
  if (address.length > LONGEST_ADDRESS) return { fault: `must have at most ${LONGEST_ADDRESS} characters` };
  return { value: address };
}

/** @returns undefined where mail can have no such domain, as for addresses of machines. */
function asciiDomain(text: string): string | undefined {
  // To the URL parser a slash ends the domain, and a percent sign stands for other characters.
  if (!DOMAIN_TEXT.test(text)) return undefined;
  const labels = domainToASCII(text).split('.');
  const isDomain = labels.length > 1 && labels.every((label) => DOMAIN_LABEL.test(label));
  // The URL parser makes an address of whatever ends in a number.
  return isDomain && !/^\d+$/.test(labels.at(-1) ?? '') ? labels.join('.') : undefined;
}
