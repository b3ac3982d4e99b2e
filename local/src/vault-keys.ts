import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';

/** Writes a key for the vaults of communication and payment, in place of any that was there. @returns the file. */
export async function writeVaultKeys(file: string): Promise<string> {
  const keys = [{ id: 'local', key: randomBytes(32).toString('base64') }];
  await writeFile(file, JSON.stringify({ keys }), { mode: 0o600 });
  return file;
}
