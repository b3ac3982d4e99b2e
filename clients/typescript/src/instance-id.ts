const MAX_LENGTH = 63;
const RANDOM_LENGTH = 8;

/**
 * The id of the instance that this process is. In a pod it is the pod's name: that of `POD_NAME`,
 * else the host's, which is the same unless the pod sets another or has the node's network.
 * Elsewhere it is the host's name and a random part, as several programs may run there. Browsers
 * have the random part alone.
 *
 * @param env of the process.
 * @returns a DNS label (RFC 1123).
 */
export function defaultInstanceId(
  env: Readonly<Record<string, string | undefined>> = globalThis.process?.env ?? {},
  host: string = hostName(),
): string {
  const pod = env['POD_NAME'] ?? (env['KUBERNETES_SERVICE_HOST'] === undefined ? undefined : host);
  const name = labelOf(pod ?? host);
  if (pod !== undefined && name !== '' && name.length <= MAX_LENGTH) return name;
  const random = globalThis.crypto.randomUUID().slice(0, RANDOM_LENGTH);
  const start = labelOf(name.slice(0, MAX_LENGTH - RANDOM_LENGTH - 1));
  return start === '' ? random : `${start}-${random}`;
}

/** Not imported, for browsers have no such module. */
function hostName(): string {
  return globalThis.process?.getBuiltinModule?.('node:os').hostname() ?? '';
}

function labelOf(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .replace(/-$/, '');
}
