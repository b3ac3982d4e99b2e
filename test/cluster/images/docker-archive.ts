import { createHash } from 'node:crypto';
import { createTar, type TarEntry } from './tar.ts';

/** A layer of an image: the directories above an entry need not be named. */
export type Layer = readonly TarEntry[];

/** An image under one name. */
export interface Image {
  /** With registry and tag, as containerd would otherwise complete it. */
  readonly name: string;
  /** From the bottom; those that several images of an archive have in common are stored once. */
  readonly layers: readonly Layer[];
  readonly config: ImageConfig;
}

interface ImageConfig {
  readonly Entrypoint: readonly string[];
  readonly Env?: readonly string[];
  readonly User?: string;
  readonly WorkingDir?: string;
}

const EPOCH = '1970-01-01T00:00:00Z';

/**
 * Writes images as a `docker save` would, for `ctr images import`, `kind load image-archive` and
 * `docker load`.
 */
export async function writeDockerArchive(file: string, images: readonly Image[]): Promise<void> {
  await using tar = await createTar(file);
  const layers = [...new Set(images.flatMap((image) => image.layers))];
  const stored = new Map<Layer, { readonly path: string; readonly digest: string }>();
  for (const [index, layer] of layers.entries()) {
    const path = `layer-${index}.tar`;
    stored.set(layer, { path, digest: await tar.addArchive(path, withDirectories(layer)) });
  }
  const manifest: object[] = [];
  for (const { name, layers, config } of images) {
    const own = layers.flatMap((layer) => stored.get(layer) ?? []);
    const content = Buffer.from(
      JSON.stringify(
        imageConfig(
          config,
          own.map(({ digest }) => digest),
        ),
      ),
    );
    const path = `${createHash('sha256').update(content).digest('hex')}.json`;
    await tar.add({ path, content });
    manifest.push({ Config: path, RepoTags: [name], Layers: own.map((layer) => layer.path) });
  }
  await tar.add({ path: 'manifest.json', content: Buffer.from(JSON.stringify(manifest)) });
  await tar.finish();
}

/** Node's name of the architecture to the one that images use. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64' };

function imageConfig(config: ImageConfig, digests: readonly string[]): object {
  return {
    architecture: ARCHITECTURES[process.arch] ?? process.arch,
    os: 'linux',
    created: EPOCH,
    config,
    rootfs: { type: 'layers', diff_ids: digests.map((digest) => `sha256:${digest}`) },
    history: digests.map(() => ({ created: EPOCH, created_by: 'rollcall e2e' })),
  };
}

/** The layer, sorted, with every directory before what is in it. */
export function withDirectories(layer: Layer): Layer {
  const entries = new Map(layer.map((entry) => [entry.path, entry]));
  for (const { path } of layer) {
    const parts = path.split('/');
    for (let depth = 1; depth < parts.length; depth += 1) {
      const directory = parts.slice(0, depth).join('/');
      if (!entries.has(directory)) entries.set(directory, { path: directory });
    }
  }
  return [...entries.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}
