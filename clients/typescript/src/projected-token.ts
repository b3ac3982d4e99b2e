/** Where the token is that a pod has for the registry, as README.md shows its volume. */
const PROJECTED_TOKEN_FILE = '/var/run/secrets/rollcall/token';

/**
 * The service account's token that Kubernetes projects into the pod: the file that
 * `ROLLCALL_TOKEN_FILE` names, else {@link PROJECTED_TOKEN_FILE}. It is read for every request, so
 * that a rotated token is used at once; while it cannot be read the last one serves.
 *
 * @param env of the process. Where the variable is empty there is no token.
 * @returns a source of tokens: undefined as long as there is no file, as in browsers and outside of
 * pods.
 */
export function projectedToken(
  env: Readonly<Record<string, string | undefined>> = globalThis.process?.env ?? {},
): () => string | undefined {
  const path = env['ROLLCALL_TOKEN_FILE'] ?? PROJECTED_TOKEN_FILE;
  // Not imported, for browsers have no such module.
  const files = path === '' ? undefined : globalThis.process?.getBuiltinModule?.('node:fs');
  let last: string | undefined;
  return () => {
    try {
      // A few hundred bytes, in memory.
      last = files?.readFileSync(path, 'utf8').trim() || last;
    } catch {
      // As most programs outside of pods have it.
    }
    return last;
  };
}
