import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';

/** A file, directory or symbolic link of an archive. */
export interface TarEntry {
  /** Without a leading slash; at most 100 bytes. */
  readonly path: string;
  /** Its content, or the file that has it. Absent for a directory. */
  readonly content?: Buffer | { readonly file: string };
  /** Where a link leads, instead of a content; at most 100 bytes. */
  readonly target?: string;
  readonly executable?: boolean;
}

/**
 * Writes archives into one file, one inside the other; everything belongs to root and is of 1970,
 * so that the same entries give the same bytes.
 */
export interface TarWriter extends AsyncDisposable {
  add(entry: TarEntry): Promise<void>;
  /** Adds a file that is an archive of the entries. @returns its SHA-256 in hexadecimal. */
  addArchive(path: string, entries: readonly TarEntry[]): Promise<string>;
  /** Writes the end of the archive. */
  finish(): Promise<void>;
}

const BLOCK = 512;
const END = Buffer.alloc(2 * BLOCK);

export async function createTar(file: string): Promise<TarWriter> {
  const handle = await open(file, 'w');
  const outer: Output = { handle, hash: undefined };
  return {
    add: (entry) => writeEntry(outer, entry),
    addArchive: async (path, entries) => {
      const sizes = await Promise.all(entries.map(sizeOf));
      const size = sizes.reduce((sum, each) => sum + BLOCK + padded(each), END.length);
      await write(outer, header({ path }, size));
      const inner: Output = { handle, hash: createHash('sha256') };
      for (const entry of entries) await writeEntry(inner, entry);
      await write(inner, END);
      return inner.hash?.digest('hex') ?? '';
    },
    finish: () => write(outer, END),
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

interface Output {
  readonly handle: FileHandle;
  readonly hash: Hash | undefined;
}

async function write({ handle, hash }: Output, bytes: Buffer): Promise<void> {
  hash?.update(bytes);
  await handle.writeFile(bytes);
}

async function writeEntry(output: Output, entry: TarEntry): Promise<void> {
  const size = await sizeOf(entry);
  await write(output, header(entry, size));
  const { content } = entry;
  if (content === undefined) return;
  if (Buffer.isBuffer(content)) await write(output, content);
  else for await (const chunk of createReadStream(content.file, { highWaterMark: 1 << 20 })) await write(output, chunk);
  await write(output, Buffer.alloc(padded(size) - size));
}

async function sizeOf({ content }: TarEntry): Promise<number> {
  if (content === undefined) return 0;
  return Buffer.isBuffer(content) ? content.length : (await stat(content.file)).size;
}

function padded(size: number): number {
  return Math.ceil(size / BLOCK) * BLOCK;
}

/** A header of the POSIX ustar format. */
function header({ path, content, target, executable = false }: TarEntry, size: number): Buffer {
  const isLink = target !== undefined;
  const isDirectory = content === undefined && !isLink && size === 0;
  const name = isDirectory ? `${path}/` : path;
  for (const each of [name, target ?? '']) {
    if (Buffer.byteLength(each) > 100) throw new Error(`Too long for an entry of an archive: ${each}`);
  }
  const block = Buffer.alloc(BLOCK);
  block.write(name, 0);
  block.write(octal(isLink ? 0o777 : isDirectory || executable ? 0o755 : 0o644, 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(size, 12), 124);
  block.write(octal(0, 12), 136);
  // The checksum is made as if its own field held spaces.
  block.write(' '.repeat(8), 148);
  block.write(isLink ? '2' : isDirectory ? '5' : '0', 156);
  block.write(target ?? '', 157);
  block.write('ustar\x0000', 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

function octal(value: number, length: number): string {
  return `${value.toString(8).padStart(length - 1, '0')}\0`;
}
