import { spawnSync } from 'node:child_process';
import { findProgram } from '../support/debian-program.ts';

const poppler = await findProgram({ name: 'pdftotext', packageName: 'poppler-utils' });

/** There is no Poppler on this machine, nor can it be fetched. */
export const canNotRead = poppler === undefined;

/** What is written in a PDF, by Poppler; `none` where {@link canNotRead}. */
export function textOf(pdf: Buffer): string {
  if (poppler === undefined) return 'none';
  const { file, env } = poppler;
  const { stdout, status, stderr } = spawnSync(file, ['-layout', '-', '-'], { input: pdf, env });
  if (status !== 0) throw new Error(`pdftotext has failed: ${stderr.toString()}`);
  return stdout.toString();
}
