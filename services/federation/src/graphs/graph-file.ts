import { readFile, rename, writeFile } from 'node:fs/promises';
import { errorMessage } from '@rollcall/platform/errors.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import type { Generation } from '../domain/ports.ts';

/** Keeps the graph in force where a replica finds it that starts while the database is away. */
export interface GraphFile {
  /** @returns undefined where there is none that can be read. */
  read(): Promise<Generation | undefined>;
  /** Where it cannot be written the one before stays. */
  write(generation: Generation): Promise<void>;
}

const Kept = Type.Object({ number: Type.Integer(), supergraph: Type.String(), hash: Type.String() });

/** @param path of a file of this replica alone, in a directory that is there. */
export function createGraphFile(path: string, log: Logger): GraphFile {
  return {
    async read() {
      try {
        return Value.Parse(Kept, JSON.parse(await readFile(path, 'utf8')));
      } catch (error) {
        log.warn({ message: errorMessage(error) }, 'there is no graph in the file');
        return undefined;
      }
    },
    async write({ number, supergraph, hash }) {
      const next = `${path}.next`;
      try {
        await writeFile(next, JSON.stringify({ number, supergraph, hash }));
        await rename(next, path);
      } catch (error) {
        log.warn({ message: errorMessage(error) }, 'the graph in force could not be kept in a file');
      }
    },
  };
}
