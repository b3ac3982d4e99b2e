// `npm run --silent sbom`: prints what Rollcall's image brings along, from package-lock.json, as
// CycloneDX. Node itself and the base image are not in it.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

interface Component {
  readonly 'bom-ref': string;
  readonly name: string;
}

/** What `npm sbom` prints, as far as it is changed here. */
interface Sbom {
  readonly serialNumber: string;
  readonly metadata: { readonly timestamp: string; readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/**
 * Optional peers: of a package that mjml brings, and of GraphiQL's toolkit. npm lists such ones where
 * they are for development, too, and does not install them.
 */
const NOT_INSTALLED = /^(?:(?:@typescript\/)?typescript[-@]|graphql-ws@)/;

/**
 * The same document for the same packages: npm makes up a serial number, adds the time, and calls
 * our own packages by their directories. The serial number becomes a digest of the rest, and the
 * time that of the sources, where it is known.
 *
 * @param epoch SOURCE_DATE_EPOCH, seconds since 1970.
 */
export function reproducible(document: Sbom, epoch: string | undefined): object {
  const { serialNumber: _random, ...rest } = document;
  const { timestamp: _now, ...metadata } = rest.metadata;
  const time = epoch === undefined || epoch === '' ? {} : { timestamp: new Date(Number(epoch) * 1000).toISOString() };
  const content = {
    ...rest,
    metadata: { ...time, ...metadata, component: named(metadata.component) },
    components: rest.components.filter((component) => isInstalled(component['bom-ref'])).map(named),
    dependencies: rest.dependencies
      .filter(({ ref }) => isInstalled(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isInstalled) })),
  };
  const digest = createHash('sha256').update(JSON.stringify(content)).digest('hex');
  return { ...content, serialNumber: `urn:uuid:${uuid(digest)}` };
}

function isInstalled(ref: string): boolean {
  return !NOT_INSTALLED.test(ref);
}

/** By the name of the package, which its reference is made of. */
function named(component: Component): Component {
  return { ...component, name: component['bom-ref'].replace(/@[^@]*$/, '') };
}

/** A UUID of version 8, the one whose content is free. */
function uuid(hex: string): string {
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ];
  return parts.join('-');
}

/**
 * Not `--omit=dev`: with it npm leaves out packages that others need in production. None of ours
 * has any for development.
 */
async function readSbom(): Promise<Sbom> {
  const what = [
    '--sbom-format=cyclonedx',
    '--sbom-type=application',
    '--package-lock-only',
    '--workspace=@rollcall/image',
  ];
  const { stdout } = await run('npm', ['sbom', ...what], {
    cwd: join(import.meta.dirname, '..'),
    maxBuffer: 64 * 1024 * 1024,
  });
  return JSON.parse(stdout);
}

if (import.meta.main) {
  const document = reproducible(await readSbom(), process.env['SOURCE_DATE_EPOCH']);
  process.stdout.write(`${JSON.stringify(document, undefined, 2)}\n`);
}
