import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { constants, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheDirectory } from '@rollcall/local/cache-directory.ts';
import { runtime } from '@rollcall/local/runtime.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '../node/command.ts';
import { buildRollcallImage, findRollcallImages, type ImageOptions, imageProblem } from './rollcall-image.ts';

const problem = await imageProblem();
if (problem !== undefined) console.error(`Skipped: ${problem}`);

/** Bytes, unpacked, without Node and its libraries. */
const LARGEST = 250e6;

describe.skipIf(problem !== undefined)('the image', () => {
  const options: ImageOptions = { cacheDirectory: cacheDirectory(process.env, 'image'), log: console.error };
  let directory: string;
  let image: Unpacked;

  beforeAll(async () => {
    // What it starts, too: tests beside it have a cluster on the same cores, and limits of time.
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
    directory = await mkdtemp(join(tmpdir(), 'rollcall-image-'));
    image = await unpack((await findRollcallImages(options)).rollcall, join(directory, 'image'));
  });
  afterAll(async () => {
    setPriority(constants.priority.PRIORITY_NORMAL);
    await rm(directory, { recursive: true, force: true });
  });

  test('says what it is, and runs as nobody', () => {
    expect(image.config).toMatchObject({
      User: '65532:65532',
      Entrypoint: ['node', '/app/image/src/main.js'],
      Env: expect.arrayContaining(Object.entries(runtime).map(([name, value]) => `${name}=${value}`)),
      Labels: {
        'org.opencontainers.image.title': 'Rollcall',
        'org.opencontainers.image.licenses': 'Apache-2.0',
        'org.opencontainers.image.version': expect.stringMatching(/^\d+\.\d+\.\d+/),
      },
    });
    expect(image.config.Cmd ?? []).toEqual([]);
  });

  test('has neither a shell nor npm', () => {
    const programs = image.entries.map(({ path }) => path).filter((path) => /(^|\/)bin\/[^/]+$/.test(path));
    const known = ['app/cli/bin/rollcall.js', 'usr/local/bin/node'];
    expect(programs.filter((path) => !path.includes('node_modules/')).sort()).toEqual(known);
    expect(image.entries.filter(({ path }) => path.includes('node_modules/npm/'))).toEqual([]);
  });

  test('is small, and all of it belongs to root, who alone may write it', () => {
    const own = image.entries.filter(({ path }) => path.startsWith('app/'));
    const size = own.reduce((sum, entry) => sum + entry.size, 0);
    console.log(`the image is ${(size / 1e6).toFixed(1)} MB in ${own.length} entries without Node`);
    expect(size).toBeGreaterThan(1e6);
    expect(size).toBeLessThan(LARGEST);
    expect(image.entries.filter(({ owner }) => owner !== '0/0')).toEqual([]);
    const open = image.entries.filter(({ mode }) => !mode.startsWith('l') && !/^.rw.r-.r-.$/.test(mode));
    expect(open).toEqual([]);
  });

  test('has no tests, no sources of other programs and no settings of npm', () => {
    const paths = image.entries.map(({ path }) => path);
    const own = paths.filter((path) => path.startsWith('app/') && !path.includes('/node_modules/'));
    const folders = ['cli', 'clients', 'crds', 'fetcher', 'image', 'operator', 'platform', 'services'];
    const found = new Set(own.map((path) => path.split('/')[1]));
    expect(found).toEqual(new Set(['', ...folders, 'package.json', 'sbom.cdx.json']));
    expect(own.filter((path) => /\.test\.js$|\.ts$|\/model\/|\/testing\//.test(path))).toEqual([]);
  });

  test('has what services read beside their code', () => {
    const paths = new Set(image.entries.map(({ path }) => path));
    expect(paths).toContain('app/platform/migrations/0001-idempotency.sql');
    expect(paths).toContain('app/services/communication/migrations/0002-messages.sql');
    expect(paths).toContain('app/services/payment/migrations/0002-payments.sql');
    expect(paths).toContain('app/services/federation/migrations/0001-subgraphs.sql');
    expect(paths).toContain('app/services/communication/templates/receipt.mjml');
    expect(paths).toContain('app/node_modules/dejavu-fonts-ttf/ttf/DejaVuSans.ttf');
  });

  test('has a bill of materials with exactly the packages that are in it', async () => {
    const document: { bomFormat: string; components: { name: string; version: string }[] } = JSON.parse(
      await image.read('app/sbom.cdx.json'),
    );
    expect(document.bomFormat).toBe('CycloneDX');
    const listed = new Set(document.components.map(({ name, version }) => `${name}@${version}`));
    const manifests = image.entries.filter(({ path }) => isManifest(path));
    const present = await Promise.all(
      manifests.map(async ({ path }) => {
        const { name, version }: { name: string; version: string } = JSON.parse(await image.read(path));
        return `${name}@${version}`;
      }),
    );
    expect([...new Set(present)].sort()).toEqual([...listed].sort());
    expect(listed.size).toBeGreaterThan(50);
  });

  test('is the same, layer by layer, when it is built again', async () => {
    const again = join(directory, 'again.tar');
    await buildRollcallImage(again, options);
    const { layers } = await unpack(again, join(directory, 'unpacked-again'));
    expect(layers).toEqual(image.layers);
  });
});

/**
 * Of a package that is installed, or of one of ours; not of those that packages have for their own
 * purposes.
 */
function isManifest(path: string): boolean {
  const own = /^app\/(cli|crds|platform|operator|fetcher|image|clients\/[^/]+|services\/[^/]+)\/package\.json$/;
  return own.test(path) || /\/node_modules\/(@[^/]+\/)?[^/@]+\/package\.json$/.test(path);
}

interface Entry {
  readonly mode: string;
  readonly owner: string;
  readonly size: number;
  readonly path: string;
}

interface Unpacked {
  readonly config: {
    readonly User: string;
    readonly Entrypoint: readonly string[];
    readonly Cmd?: readonly string[];
    readonly Labels: Readonly<Record<string, string>>;
  };
  /** Digests, from the bottom. */
  readonly layers: readonly string[];
  /** Of all layers. */
  readonly entries: readonly Entry[];
  /** Reads a file of them. */
  read(path: string): Promise<string>;
}

async function unpack(archive: string, directory: string): Promise<Unpacked> {
  const root = join(directory, 'root');
  await mkdir(root, { recursive: true });
  await runCommand(['tar', '--extract', '--file', archive, '--directory', directory]);
  const [manifest]: { Config: string; Layers: string[] }[] = JSON.parse(
    await readFile(join(directory, 'manifest.json'), 'utf8'),
  );
  const described: { config: Unpacked['config']; rootfs: { diff_ids: string[] } } = JSON.parse(
    await readFile(join(directory, manifest?.Config ?? ''), 'utf8'),
  );
  const entries: Entry[] = [];
  for (const layer of manifest?.Layers ?? []) {
    const file = join(directory, layer);
    entries.push(...parseListing(await runCommand(['tar', '--list', '--verbose', '--numeric-owner', '--file', file])));
    await runCommand(['tar', '--extract', '--file', file, '--directory', root]);
  }
  return {
    config: described.config,
    layers: described.rootfs.diff_ids,
    entries,
    read: (path) => readFile(join(root, path), 'utf8'),
  };
}

/** What `tar --list --verbose` prints: mode, owner, size, date, time, path. */
function parseListing(listing: string): Entry[] {
  return listing.split('\n').flatMap((line) => {
    const [mode, owner = '', size, , , path = ''] = line.split(/\s+/);
    return mode === undefined || mode === '' ? [] : [{ mode, owner, size: Number(size), path }];
  });
}
