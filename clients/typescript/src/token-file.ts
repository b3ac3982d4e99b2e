import { readFile } from 'node:fs/promises';

/**
 * A bearer token kept in a file that somebody else renews, such as a projected Kubernetes
 * service-account token. The file is read for every request, so a rotated token is used at once;
 * while it cannot be read the last token serves. Node only.
 *
 * @throws (when called) the error of reading, as long as no token was ever read.
 */
export function tokenFromFile(path: string): () => Promise<string> {
  let last: string | undefined;
  return async () => {
    try {
      last = (await readFile(path, 'utf8')).trim();
    } catch (error) {
      if (last === undefined) throw error;
    }
    return last;
  };
}
