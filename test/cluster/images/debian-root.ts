import { existsSync } from 'node:fs';
import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseSimulation } from '@rollcall/local/debian-packages.ts';
import { runCommand } from '../node/command.ts';

/** What apt checks Debian's signatures with; every Debian has it. */
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Why no root can be made on this machine, in a sentence, or undefined when one can. */
export function debianRootProblem(): string | undefined {
  return existsSync(KEYRING) ? undefined : `images of Debian's packages need ${KEYRING}`;
}

export interface DebianRootOptions {
  /** Such as `trixie`; need not be that of this machine. */
  readonly release: string;
  readonly packages: readonly string[];
  /** Of what the packages depend on: what is left out. */
  readonly without: RegExp;
  /** Where the root comes to be; not there yet. */
  readonly directory: string;
  /** For apt's own files. */
  readonly workDirectory: string;
  readonly signal?: AbortSignal | undefined;
}

/** What every image can do without. */
const LEFT_OUT = ['doc', 'man', 'info', 'locale', 'lintian', 'bug'].map((name) => `--exclude=./usr/share/${name}/*`);

/**
 * A root file system of packages and what these depend on, unpacked and no more: nothing of them is
 * run. What Debian takes for granted, such as a shell, has to be asked for.
 *
 * @throws when apt cannot fetch them.
 */
export async function unpackDebianRoot(options: DebianRootOptions): Promise<void> {
  const { packages, without, directory, workDirectory, signal } = options;
  const apt = await configureApt(options);
  await runCommand([...apt, '-o', 'APT::Update::Error-Mode=any', 'update'], signal);
  const simulation = await runCommand(
    [...apt, '--simulate', '--no-install-recommends', 'install', ...packages],
    signal,
  );
  const planned = parseSimulation(simulation).filter(({ name }) => !without.test(name));
  const files = join(workDirectory, 'files');
  await mkdir(files);
  const wanted = planned.map(({ name, version }) => `${name}=${version}`);
  await runCommand(['env', '--chdir', files, ...apt, 'download', ...wanted], signal);
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    await mkdir(join(directory, 'usr', name), { recursive: true });
    await symlink(`usr/${name}`, join(directory, name));
  }
  const unpack = 'dpkg-deb --fsys-tarfile "$0" | tar --extract --keep-directory-symlink --directory "$@"';
  for (const file of await readdir(files)) {
    await runCommand(['bash', '-o', 'pipefail', '-c', unpack, join(files, file), directory, ...LEFT_OUT], signal);
  }
  await rm(files, { recursive: true });
}

/**
 * @returns the beginning of apt-get's command line. It sees one release and takes nothing for
 * installed.
 */
async function configureApt({ release, workDirectory }: DebianRootOptions): Promise<string[]> {
  const file = (name: string): string => join(workDirectory, name);
  await mkdir(file('lists/partial'), { recursive: true });
  await mkdir(file('cache/archives/partial'), { recursive: true });
  await writeFile(file('status'), '');
  await writeFile(file('sources.list'), `deb [signed-by=${KEYRING}] ${await mirror()} ${release} main\n`);
  const settings = [
    `Dir::State "${workDirectory}";`,
    `Dir::State::status "${file('status')}";`,
    `Dir::State::lists "${file('lists')}";`,
    `Dir::Cache "${file('cache')}";`,
    `Dir::Etc::sourcelist "${file('sources.list')}";`,
    'Dir::Etc::sourceparts "-";',
    'Dir::Etc::preferences "-";',
    'Dir::Etc::preferencesparts "-";',
    // What the machine does after an update of its own lists is not ours to start.
    '#clear APT::Update::Pre-Invoke;',
    '#clear APT::Update::Post-Invoke;',
    '#clear APT::Update::Post-Invoke-Success;',
    // It could not read our files, and need not: nothing that it unpacks is run.
    'APT::Sandbox::User "root";',
    'Acquire::Languages "none";',
    'Acquire::http::Timeout "20";',
    'Acquire::https::Timeout "20";',
  ];
  await writeFile(file('apt.conf'), `${settings.join('\n')}\n`);
  return ['env', 'LC_ALL=C', 'apt-get', '-q', '-c', file('apt.conf')];
}

/** Where this machine gets Debian from, or the usual mirror. */
async function mirror(): Promise<string> {
  const sites = await runCommand(['apt-get', 'indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages']);
  return sites.split('\n').find((site) => /\/debian\/?$/.test(site)) ?? 'http://deb.debian.org/debian';
}
