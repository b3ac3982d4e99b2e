import { type ScryptOptions, scryptSync } from 'node:crypto';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

export const HASH_BYTES = 32;
/** OWASP's password storage cheat sheet, scrypt with 16 MiB. */
const COST: ScryptOptions = { N: 2 ** 14, r: 8, p: 5 };
/** Marks the thread: tests may run in threads of their own. */
const ROLE = 'rollcall-scrypt';

interface Task {
  readonly secret: string;
  readonly salt: Uint8Array;
}

/** Computes the scrypt hash of a secret. */
export type Scrypt = (secret: string, salt: Uint8Array) => Promise<Buffer>;

/**
 * One thread for all hashes, one after the other; it is made for the first. Each takes 16 MiB for a
 * moment, which the C library would keep for every thread of libuv's that has computed one.
 */
export function createScrypt(): Scrypt {
  const waiting: PromiseWithResolvers<Buffer>[] = [];
  let worker: Worker | undefined;

  function start(): Worker {
    const started = new Worker(new URL(import.meta.url), { workerData: ROLE });
    started.on('message', (hash: Uint8Array) => {
      waiting.shift()?.resolve(Buffer.from(hash));
      if (waiting.length === 0) started.unref();
    });
    started.on('error', (error) => {
      worker = undefined;
      for (const { reject } of waiting.splice(0)) reject(error);
    });
    return started;
  }

  return (secret, salt) => {
    const answer = Promise.withResolvers<Buffer>();
    waiting.push(answer);
    worker ??= start();
    worker.ref();
    worker.postMessage({ secret, salt } satisfies Task);
    return answer.promise;
  };
}

if (!isMainThread && workerData === ROLE) {
  parentPort?.on('message', ({ secret, salt }: Task) => {
    parentPort?.postMessage(scryptSync(secret, salt, HASH_BYTES, COST));
  });
}
