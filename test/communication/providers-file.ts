import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inject } from 'vitest';

/** Writes a file of providers on this machine. @returns the settings that name it. */
export async function writeProviders(providers: unknown): Promise<Readonly<Record<string, string>>> {
  const file = join(await mkdtemp(join(inject('temporaryDirectory'), 'providers-')), 'providers.json');
  await writeFile(file, JSON.stringify(providers));
  return { ROLLCALL_PROVIDERS_FILE: file, ROLLCALL_PROVIDER_ADDRESSES: 'any' };
}
