import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '@rollcall/platform/retry.ts';

const REFRESH_MS = 5_000;
const RETRY_MS = 500;

/**
 * A lock that is older has lost its holder, whatever its process id says: ids are reused, and
 * differ between containers.
 */
const STALE_MS = 30_000;

export type LockAttempt = { readonly lock: AsyncDisposable } | { readonly heldBy: number };

export interface WaitForLock {
  readonly signal?: AbortSignal | undefined;
  /** Called every half second with the process that has it. */
  readonly waiting?: (heldBy: number) => void;
}

/**
 * Does something that one process at a time may do in a directory, which is made when it is not
 * there.
 */
export async function withLock<T>(directory: string, options: WaitForLock, work: () => Promise<T>): Promise<T> {
  const { signal, waiting } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  while (true) {
    signal?.throwIfAborted();
    const attempt = await tryLock(join(directory, '.lock'));
    if ('lock' in attempt) {
      await using held = new AsyncDisposableStack();
      held.use(attempt.lock);
      return await work();
    }
    waiting?.(attempt.heldBy);
    await sleep(RETRY_MS, signal);
  }
}

/**
 * Acquires a lock between processes, without waiting. The file holds the holder's process id and is
 * touched while it is held; a file whose process is gone, or that has not been touched for 30 s, is
 * acquired by the next.
 *
 * Two processes that acquire the same stale lock at the same moment can both get it. So what the
 * lock guards must be correct without it; it saves work, no more.
 */
export async function tryLock(path: string): Promise<LockAttempt> {
  // One process may try several times at once.
  const ticket = `${path}.${randomUUID()}`;
  await writeFile(ticket, String(process.pid));
  try {
    while (true) {
      try {
        // A link appears together with its content, unlike a file that is created and then written.
        await link(ticket, path);
        return { lock: hold(path) };
      } catch (err) {
        if (!isCode(err, 'EEXIST')) throw err;
      }
      const holder = await liveHolder(path);
      if (holder !== undefined) return { heldBy: holder };
      await rm(path, { force: true });
    }
  } finally {
    await rm(ticket, { force: true });
  }
}

async function liveHolder(path: string): Promise<number | undefined> {
  try {
    const [text, { mtimeMs }] = await Promise.all([readFile(path, 'utf8'), stat(path)]);
    const pid = Number(text);
    return isAlive(pid) && Date.now() - mtimeMs < STALE_MS ? pid : undefined;
  } catch (err) {
    if (isCode(err, 'ENOENT')) return undefined;
    throw err;
  }
}

function hold(path: string): AsyncDisposable {
  const refresh = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, REFRESH_MS);
  refresh.unref();
  return {
    [Symbol.asyncDispose]: async () => {
      clearInterval(refresh);
      await rm(path, { force: true });
    },
  };
}

/** Whether a process of that id exists, ours or another user's. */
export function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (err) {
    return isCode(err, 'EPERM');
  }
}

/** Whether a thrown value is a system error of that code. */
export function isCode(err: unknown, code: string): boolean {
  return err instanceof Error && 'code' in err && err.code === code;
}
