import { readFileSync } from 'node:fs';

/** @param manifest of a package.json. @returns its version. */
export function packageVersion(manifest: URL): string {
  const { version }: { version: string } = JSON.parse(readFileSync(manifest, 'utf8'));
  return version;
}
