/**
 * What follows these is a secret by itself: the token of a link, or what a provider that signs
 * nothing was told to call. Or it is personal: an address, a number, or the token of a device.
 */
const PREFIXES = [
  '/pay',
  '/unsubscribe',
  '/api/v1/payment/notifications',
  '/api/v1/communication/notifications',
  '/api/v1/communication/suppressions',
  '/api/v1/communication/devices',
];
const HIDDEN = '/*';

/**
 * Pure.
 *
 * @param target path, with or without its query, of which nothing is known yet: it may be refused.
 * @returns what logs and traces may have of it.
 */
export function shownPath(target: string): string {
  const prefix = secretPrefix(target);
  return prefix === undefined ? target : `${prefix}${HIDDEN}`;
}

/**
 * Pure. The same for the path on the way to a service.
 *
 * @param target as the caller sent it.
 */
export function shownUpstreamPath(path: string, target: string): string {
  return secretPrefix(target) === undefined ? path : HIDDEN;
}

/** However it is written: what reads like such a path is refused, and has been logged then. */
function secretPrefix(target: string): string | undefined {
  const plain = /[%A-Z;]/.test(target) ? spelledPlainly(target) : target;
  return PREFIXES.find((prefix) => plain.startsWith(`${prefix}/`));
}

function spelledPlainly(target: string): string {
  const decoded = target.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return decoded.replaceAll(/;[^/]*/g, '').toLowerCase();
}
