import { writeFile } from 'node:fs/promises';

/** Writes who issues invoices, for trying out. @returns the file. */
export async function writeSellers(file: string): Promise<string> {
  const sellers = [{ name: 'Kettle (Pty) Ltd', address: ['1 Long Street', 'Cape Town', '8001'], country: 'ZA' }];
  await writeFile(file, JSON.stringify({ sellers }));
  return file;
}
