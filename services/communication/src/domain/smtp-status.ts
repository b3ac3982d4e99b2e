/** An enhanced status code of RFC 3463, such as 5.1.1, in what a mail server wrote. */
const STATUS_CODE = /(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.])/;

/** @returns the first enhanced status code of a text, such as `5.1.1`; undefined: it has none. */
export function statusCodeOf(text: string): string | undefined {
  return STATUS_CODE.exec(text)?.[1];
}

/**
 * Whether the address will never be good: bad mailbox, domain or syntax (RFC 3463, section 3.2), or a
 * mailbox that moved. Nothing else may suppress an address; a full mailbox or a server that defers for
 * days says nothing of it.
 */
export function isUnknownAddress(code: string | undefined): boolean {
  return code !== undefined && /^5\.1\.(?:1|2|3|6|10)$/.test(code);
}
