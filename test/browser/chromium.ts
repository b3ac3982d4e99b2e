import { execFile } from 'node:child_process';
import { access, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheDirectory } from '@rollcall/local/cache-directory.ts';
import { type Browser, chromium } from 'playwright-core';

const run = promisify(execFile);
const UNPACK = "import chromium from '@sparticuz/chromium'; await chromium.executablePath()";
/** By it the package unpacks the libraries, too, that a machine may lack. */
const WITH_LIBRARIES = { AWS_LAMBDA_JS_RUNTIME: 'nodejs22.x' };

/** Whether npm has one for this machine. */
export const hasChromium = process.platform === 'linux' && process.arch === 'x64';

/** Starts the Chromium that npm has installed. Tests may run as root, for whom it has no sandbox. */
export async function launchChromium(): Promise<Browser> {
  const directory = await findUnpacked();
  const fontSettings = join(directory, 'rollcall-fonts.conf');
  await writeFile(fontSettings, fontSettingsOf(directory));
  return chromium.launch({
    executablePath: join(directory, 'chromium'),
    args: ['--no-sandbox', '--disable-gpu', '--no-zygote'],
    env: {
      HOME: directory,
      FONTCONFIG_FILE: fontSettings,
      LD_LIBRARY_PATH: join(directory, 'al2023', 'lib'),
    },
  });
}

/** Those of the package look into folders of the system alone. Without a font it shows nothing, and ends. */
function fontSettingsOf(directory: string): string {
  return `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<dir>${join(directory, 'fonts')}</dir><cachedir>${join(directory, 'fonts-cache')}</cachedir></fontconfig>
`;
}

/** @returns the directory of its files, unpacked where the cache has none of its version. */
async function findUnpacked(): Promise<string> {
  const manifest = new URL('../package.json', import.meta.resolve('@sparticuz/chromium'));
  const { version }: { readonly version: string } = JSON.parse(await readFile(manifest, 'utf8'));
  const cache = cacheDirectory(process.env, 'chromium');
  const directory = join(cache, version);
  if (await exists(directory)) return directory;
  await mkdir(cache, { recursive: true });
  const temporary = await mkdtemp(join(cache, 'unpacking-'));
  try {
    await run(process.execPath, ['--input-type=module', '--eval', UNPACK], {
      cwd: import.meta.dirname,
      env: { TMPDIR: temporary, ...WITH_LIBRARIES },
    });
    await rename(temporary, directory).catch(async (error: unknown) => {
      // Somebody else was faster.
      if (!(await exists(directory))) throw error;
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return directory;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
