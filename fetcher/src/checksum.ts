import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat } from 'node:fs/promises';

export interface Checksum {
  readonly algorithm: 'sha256' | 'sha512';
  /** In lower case. */
  readonly hex: string;
}

/** `sha256:<64 hex digits>` or `sha512:<128 hex digits>`; undefined: anything else. */
export function parseChecksum(text: string): Checksum | undefined {
  const hex = text.slice('sha256:'.length).toLowerCase();
  if (/^sha256:[0-9a-f]{64}$/i.test(text)) return { algorithm: 'sha256', hex };
  if (/^sha512:[0-9a-f]{128}$/i.test(text)) return { algorithm: 'sha512', hex };
  return undefined;
}

/**
 * Whether there is a regular file of at most so many bytes with this checksum. A link is none: it
 * is replaced.
 */
export async function fileMatches(path: string, checksum: Checksum, maxBytes: number): Promise<boolean> {
  try {
    const stats = await lstat(path);
    if (!stats.isFile() || stats.size > maxBytes) return false;
    const hash = createHash(checksum.algorithm);
    for await (const chunk of createReadStream(path)) hash.update(chunk);
    return hash.digest('hex') === checksum.hex;
  } catch {
    // Absent, or not to be read: it is fetched, and what is wrong shows when it is to be written.
    return false;
  }
}
