import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cacheDirectory } from '@rollcall/local/cache-directory.ts';

const run = promisify(execFile);
const REQUIREMENTS = fileURLToPath(new URL('requirements.txt', import.meta.url));
const SETTINGS = fileURLToPath(new URL('schemathesis.toml', import.meta.url));
const INSTALL_TIMEOUT_MS = 240_000;

/** What a run came to. */
export interface Findings {
  /** Requests that were made up and sent. */
  readonly cases: number;
  /** Operations that were tried. */
  readonly operations: number;
  /** 0: nothing was found. */
  readonly code: number | null;
  /** For people: what was found, and how to repeat it. */
  readonly report: string;
}

/**
 * Runs Schemathesis (schemathesis.io) with all its checks, which are on by default, against the server that an OpenAPI document describes.
 *
 * @param api the URL of the server, of which the document is below at `/openapi.json`.
 * @param options of its command line beside those of schemathesis.toml.
 * @throws Error where Python or the packages are missing.
 */
export async function runSchemathesis(api: string, options: readonly string[]): Promise<Findings> {
  const python = await findPython();
  const args = ['-m', 'schemathesis.cli', '--config-file', SETTINGS, 'run', `${api}/openapi.json`, '--url', api];
  const child = spawn(python, [...args, ...options], {
    env: { PATH: process.env['PATH'], PYTHONHASHSEED: '0', COLUMNS: '100', NO_COLOR: '1' },
    cwd: dirname(dirname(python)),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | null>((resolve) => {
    child.on('close', resolve);
  });
  const report = await text(child.stdout);
  const count = (pattern: RegExp) => Number(pattern.exec(report)?.[1] ?? 0);
  return { cases: count(/^ *([\d,]+) generated/m), operations: count(/^ *Tested: (\d+)/m), code: await ended, report };
}

/**
 * How many operations a document has that do not stream. @throws where it refers to what is not there. @param api as of {@link runSchemathesis}. */
export async function operationsOf(api: string): Promise<number> {
  const document = await (await fetch(`${api}/openapi.json`)).text();
  const { paths, components } = JSON.parse(document) as {
    readonly paths: Record<string, object>;
    readonly components: { readonly schemas: object };
  };
  // Schemathesis takes what it does not find for anything.
  const named = document.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g).map(([, name = '']) => name);
  const missing = new Set(named).difference(new Set(Object.keys(components.schemas)));
  if (missing.size > 0) throw new Error(`The document has no schemas of ${[...missing].join(', ')}`);
  return Object.entries(paths).flatMap(([path, item]) => (/\/(watch|events)$/.test(path) ? [] : Object.keys(item)))
    .length;
}

let python: Promise<string> | undefined;

/** Tests that run at once wait for one installation. */
function findPython(): Promise<string> {
  python ??= installPython();
  return python;
}

/** @returns the Python of a virtual environment with the packages of requirements.txt, made where the cache has none. */
async function installPython(): Promise<string> {
  const digest = createHash('sha256').update(await readFile(REQUIREMENTS));
  const version = await run('python3', ['--version']).catch((cause: unknown) => {
    throw new Error('Schemathesis needs python3, 3.11 or later: install it, and its module venv', { cause });
  });
  const key = digest.update(version.stdout).digest('hex').slice(0, 16);
  const directory = join(cacheDirectory(process.env, 'schemathesis'), key);
  const python = join(directory, 'bin', 'python');
  if (await exists(python)) return python;
  const temporary = `${directory}.${process.pid}`;
  await mkdir(dirname(directory), { recursive: true });
  try {
    await run('python3', ['-m', 'venv', temporary]);
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--requirement', REQUIREMENTS];
    await run(join(temporary, 'bin', 'python'), pip, { timeout: INSTALL_TIMEOUT_MS });
    await rename(temporary, directory).catch(async (error: unknown) => {
      // Somebody else was faster.
      if (!(await exists(python))) throw error;
    });
  } catch (cause) {
    throw new Error('Schemathesis could not be installed by python3 -m venv and pip; 3.11 or later is needed', {
      cause,
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return python;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
