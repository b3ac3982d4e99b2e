import { hash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { type ArtifactOptions, fetchArtifact } from '@rollcall/fetcher/fetch-artifact.ts';
import { type Certificates, createCertificates } from '@rollcall/local/certificates.ts';
import { expect } from 'vitest';
import { type Answerer, type ArtifactServer, type Headers, startArtifactServer } from './artifact-server.ts';

type ArtifactSettings = Partial<Omit<ArtifactOptions, 'source' | 'output'>> & {
  readonly url?: string;
  readonly authorization?: string;
  readonly path?: string;
};

/**
 * A server with artifacts, a directory to fetch them to, and trust in the server's certificates in
 * this process.
 */
export interface FetcherFixture extends AsyncDisposable {
  readonly certificates: Certificates;
  readonly server: ArtifactServer;
  /** Random, of 256 KiB. */
  readonly content: Buffer;
  /** A new directory at each call. */
  directory(): Promise<string>;
  /**
   * Answers with headers and then some of the content, up to byte `end`, and closes the connection
   * once the client has stored all of that: what is still on its way when a connection ends may be
   * lost.
   */
  cut(
    end: number,
    answer?: { readonly start?: number; readonly headers?: Headers; readonly content?: Buffer },
  ): Answerer;
  /** Resolves once the file that is being fetched has so many bytes. */
  stored(bytes: number): Promise<void>;
  /** Fetches the server's artifact into a new directory. */
  fetch(settings?: ArtifactSettings): Promise<Fetched>;
  /** One more server. @param certificates those of the other ones by default. */
  startServer(certificates?: Certificates): Promise<ArtifactServer>;
}

interface Fetched {
  /** What was thrown; undefined: nothing. */
  readonly error: unknown;
  /** The fetched file; undefined: there is none. */
  readonly file: Buffer | undefined;
  /** The names of all files in the directory. */
  readonly names: readonly string[];
  readonly reports: readonly string[];
}

export function sha256(content: Buffer): { algorithm: 'sha256'; hex: string } {
  return { algorithm: 'sha256', hex: hash('sha256', content, 'hex') };
}

export async function startFetcherFixture(): Promise<FetcherFixture> {
  await using stack = new AsyncDisposableStack();
  const root = await mkdtemp(join(tmpdir(), 'rollcall-fetcher-'));
  stack.defer(() => rm(root, { recursive: true, force: true }));
  const certificates = await createCertificates(join(root, 'certificates'));
  setDefaultCACertificates([...getCACertificates('default'), await readFile(certificates.ca, 'utf8')]);
  const server = stack.use(await startArtifactServer(certificates));
  const content = randomBytes(256 * 1024);
  let directories = 0;
  const directory = async () => {
    directories += 1;
    const path = join(root, String(directories));
    await mkdir(path);
    return path;
  };
  const partialSize = async () => {
    const path = join(root, String(directories));
    const name = (await readdir(path)).find((name) => name.endsWith('.part'));
    return name === undefined ? undefined : (await stat(join(path, name))).size;
  };
  const stored = (bytes: number) => expect.poll(partialSize, { timeout: 30_000, interval: 20 }).toBe(bytes);
  const kept = stack.move();
  return {
    certificates,
    server,
    content,
    directory,
    stored,
    cut(end, { start = 0, headers = {}, content: own = content } = {}) {
      const range = start === 0 ? {} : { 'content-range': `bytes ${start}-${own.length - 1}/${own.length}` };
      return async (_request, response) => {
        response.writeHead(start === 0 ? 200 : 206, { 'content-length': own.length - start, ...range, ...headers });
        response.write(own.subarray(start, end));
        await stored(end);
        response.destroy();
      };
    },
    startServer: async (own = certificates) => kept.use(await startArtifactServer(own)),
    async fetch({ url, authorization, path, ...settings } = {}) {
      const parent = path ?? (await directory());
      const output = join(parent, 'shop');
      const reports: string[] = [];
      let error: unknown;
      try {
        await fetchArtifact({
          source: { url: new URL(url ?? `${server.origin}/shop`), authorization },
          output,
          checksum: sha256(content),
          maxBytes: 1024 * 1024,
          mayConnect: () => true,
          attempts: 4,
          backoff: { baseMs: 10, maxMs: 50 },
          idleTimeoutMs: 20_000,
          timeoutMs: 60_000,
          signal: new AbortController().signal,
          report: (line) => reports.push(line),
          ...settings,
        });
      } catch (thrown) {
        error = thrown;
      }
      const [file, names] = await Promise.all([
        readFile(output).catch(() => undefined),
        readdir(parent).catch(() => []),
      ]);
      return { error, file, names, reports };
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
