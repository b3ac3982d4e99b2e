import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findExecutable } from './executables.ts';
import { runProgram } from './processes.ts';

/** A package of a Debian-like distribution. */
export interface DebianPackage {
  readonly name: string;
  readonly version: string;
}

/** A package that apt would install, with what it replaces. */
interface PlannedPackage extends DebianPackage {
  /** The version that is installed here now. */
  readonly installed: string | undefined;
}

export interface FetchOptions {
  /** The wanted one first, then what is always unpacked with it, as they belong together. */
  readonly packages: readonly [string, ...string[]];
  /** Where the packages are unpacked. What was there is removed. */
  readonly directory: string;
  /** For apt's own files. The caller removes it. */
  readonly workDirectory: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Whether this is a machine on which `fetchDebianPackage` can work: Debian, Ubuntu and the like.
 */
export async function hasDebianTools(): Promise<boolean> {
  return (await findExecutable('apt-get')) !== undefined && (await findExecutable('dpkg-deb')) !== undefined;
}

/**
 * Fetches packages, and what they need that is not installed here, from the archive that this
 * machine is set up for, and unpacks them without installing anything. Needs no rights; apt checks
 * signatures and sums as always.
 *
 * The machine's package lists are used as they are. Where they are missing or too old to find the
 * files, new ones are fetched into the work directory.
 *
 * @returns the wanted package, its version without the epoch.
 * @throws when it is not offered or cannot be fetched.
 */
export async function fetchDebianPackage(options: FetchOptions): Promise<DebianPackage> {
  const { workDirectory, signal } = options;
  await mkdir(workDirectory, { recursive: true });
  try {
    return await fetchAndUnpack(await configure(options, []), options);
  } catch {
    signal?.throwIfAborted();
  }
  const lists = join(workDirectory, 'lists');
  await mkdir(join(lists, 'partial'), { recursive: true });
  const apt = await configure(options, [`Dir::State::lists "${lists}";`]);
  // A source that does not answer does not matter, as long as the packages can be fetched.
  const [updated] = await Promise.allSettled([apt(['-o', 'APT::Update::Error-Mode=any', 'update'])]);
  try {
    return await fetchAndUnpack(apt, options);
  } catch (err) {
    signal?.throwIfAborted();
    throw updated.status === 'rejected' ? updated.reason : err;
  }
}

/** Runs apt-get and returns its standard output. */
type Apt = (args: readonly string[], cwd?: string) => Promise<string>;

async function configure({ workDirectory, signal }: FetchOptions, settings: readonly string[]): Promise<Apt> {
  const file = join(workDirectory, 'apt.conf');
  const cache = join(workDirectory, 'cache');
  await mkdir(join(cache, 'archives', 'partial'), { recursive: true });
  const lines = [
    `Dir::Cache "${cache}";`,
    // What the machine does after an update of its own lists is not ours to start.
    '#clear APT::Update::Pre-Invoke;',
    '#clear APT::Update::Post-Invoke;',
    '#clear APT::Update::Post-Invoke-Success;',
    'Acquire::Languages "none";',
    'Acquire::http::Timeout "20";',
    'Acquire::https::Timeout "20";',
    ...settings,
  ];
  await writeFile(file, `${lines.join('\n')}\n`);
  return (args, cwd = workDirectory) =>
    runProgram(['apt-get', '-q', '-c', file, ...args], { cwd, env: { ...process.env, LC_ALL: 'C' }, signal });
}

async function fetchAndUnpack(apt: Apt, options: FetchOptions): Promise<DebianPackage> {
  const { packages: names, directory, workDirectory } = options;
  const simulation = await apt(['--simulate', '--no-install-recommends', '--reinstall', 'install', ...names]);
  const planned = parseSimulation(simulation).filter(
    ({ name, installed }) => installed === undefined || names.includes(name),
  );
  const [wanted] = names;
  const offered = planned.find(({ name }) => name === wanted);
  if (offered === undefined) throw new Error(`${wanted} cannot be fetched`);
  const files = await mkdtemp(join(workDirectory, 'files-'));
  await apt(['download', ...planned.map((each) => `${each.name}=${each.version}`)], files);
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  for (const file of await readdir(files)) await runProgram(['dpkg-deb', '--extract', join(files, file), directory]);
  const version = offered.version.replace(/^\d+:/, '');
  return { name: wanted, version };
}

/** Reads what `apt-get --simulate install` says it would install. */
export function parseSimulation(output: string): PlannedPackage[] {
  const lines = output.matchAll(/^Inst (?<name>\S+) (?:\[(?<installed>\S+)\] )?\((?<version>\S+) /gm);
  return [...lines].map(({ groups }) => ({
    name: groups?.['name'] ?? '',
    version: groups?.['version'] ?? '',
    installed: groups?.['installed'],
  }));
}
