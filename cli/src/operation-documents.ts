import { createHash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from './exit-codes.ts';
import { readText } from './read-text.ts';

type Documents = Readonly<Record<string, string>>;

/** Of one call: the gateway takes bodies of a megabyte, in which JSON escapes what is in them. */
const MOST_CHARACTERS = 250_000;
const MOST_DOCUMENTS = 1000;

/**
 * Documents of GraphQL by their ids: of a manifest, or of files, whose ids are the SHA-256 of their texts.
 *
 * @param name of the argument. @param path of a `.json`, of another file, or of a directory.
 * @throws UsageError where they cannot be read.
 */
export function readDocuments(name: string, path: string): Documents {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true)
    return Object.fromEntries(filesIn(path).map((file) => byHash(readText(name, file))));
  const text = readText(name, path);
  return path.endsWith('.json') ? readManifest(name, text) : Object.fromEntries([byHash(text)]);
}

function filesIn(directory: string): readonly string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(graphql|gql)$/.test(file))
    .map((file) => join(directory, file));
}

function byHash(text: string): [string, string] {
  return [createHash('sha256').update(text).digest('hex'), text];
}

/** `{id: document}`, as Relay and GraphQL Code Generator write it, or a manifest of Apollo. */
function readManifest(name: string, text: string): Documents {
  const manifest = parsed(text);
  const operations = isObject(manifest) ? manifest['operations'] : undefined;
  const entries = Array.isArray(operations)
    ? operations.map((each: unknown) => (isObject(each) ? [each['id'], each['body']] : []))
    : Object.entries(isObject(manifest) ? manifest : { '': undefined });
  const documents = entries.map(([id, document]): [string, string] => {
    if (typeof id === 'string' && id !== '' && typeof document === 'string') return [id, document];
    throw new UsageError(`${name}: it is neither {"id": "document"} nor a manifest of Apollo`);
  });
  return Object.fromEntries(documents);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Pure. As many calls as it takes to send them. */
export function batchesOf(documents: Documents): readonly Documents[] {
  const batches: Record<string, string>[] = [];
  let [count, characters] = [MOST_DOCUMENTS, 0];
  for (const [id, document] of Object.entries(documents)) {
    if (count >= MOST_DOCUMENTS || characters + document.length > MOST_CHARACTERS) {
      batches.push({});
      [count, characters] = [0, 0];
    }
    Object.assign(batches.at(-1) ?? {}, { [id]: document });
    count += 1;
    characters += document.length;
  }
  return batches;
}
