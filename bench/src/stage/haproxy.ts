import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDirectory } from '@rollcall/local/cache-directory.ts';
import { fetchDebianPackage, hasDebianTools } from '@rollcall/local/debian-packages.ts';
import { findExecutable, isExecutable } from '@rollcall/local/executables.ts';
import { freePorts } from '@rollcall/local/ports.ts';
import { startProcess } from '@rollcall/local/processes.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { readProcessTree } from './process-tree.ts';
import type { StageOptions, Subject } from './stage.ts';

/** An executable that is not ours. */
export interface SystemBinary {
  readonly file: string;
  /** Where its shared libraries are, when they are not the system's. */
  readonly env: Readonly<Record<string, string>>;
}

const LIBRARIES = ['usr/lib/x86_64-linux-gnu', 'usr/lib/aarch64-linux-gnu'];

/**
 * HAProxy on the PATH, else Debian's package, unpacked into the cache.
 *
 * @returns undefined where there is neither.
 */
export async function findHaproxy(env: NodeJS.ProcessEnv): Promise<SystemBinary | undefined> {
  const onPath = await findExecutable('haproxy');
  if (onPath !== undefined) return { file: onPath, env: {} };
  if (!(await hasDebianTools())) return undefined;
  const directory = cacheDirectory(env, 'haproxy');
  const file = join(directory, 'root', 'usr/sbin/haproxy');
  if (!(await isExecutable(file))) {
    await mkdir(directory, { recursive: true });
    await fetchDebianPackage({
      packages: ['haproxy'],
      directory: join(directory, 'root'),
      workDirectory: join(directory, 'apt'),
    });
  }
  const libraries = LIBRARIES.map((path) => join(directory, 'root', path)).join(':');
  return { file, env: { LD_LIBRARY_PATH: libraries } };
}

interface HaproxyOptions extends StageOptions {
  readonly binary: SystemBinary;
  readonly configuration: string;
}

export async function startHaproxy(stack: AsyncDisposableStack, options: HaproxyOptions): Promise<Subject> {
  const { directory, binary, configuration, signal } = options;
  const [port = 0] = await freePorts(1);
  const file = join(directory, 'haproxy.cfg');
  await writeFile(file, configuration.replaceAll('{port}', String(port)));
  const startedAtMs = performance.now();
  const started = await startProcess({
    name: 'haproxy',
    command: binary.file,
    args: ['-db', '-f', file],
    env: binary.env,
    logFile: join(directory, 'haproxy.log'),
  });
  stack.defer(() => started.stop({ graceMs: 1000 }));
  const isUp = () =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
  await waitUntil('HAProxy answers', isUp, { timeoutMs: 20_000, signal, failed: started.failed });
  return {
    port,
    process: started,
    readyAfterMs: performance.now() - startedAtMs,
    cpuMs: async () => (await readProcessTree(started.pid)).cpuMs,
    stop: () => started.stop({ graceMs: 1000 }),
  };
}
