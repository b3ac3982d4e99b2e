import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { LoadResult, Reply, Task } from './tasks.ts';

/** A process of its own that makes load. */
export interface LoadGenerator extends Disposable {
  /**
   * One at a time.
   *
   * @throws when the task cannot be run or the process ends; requests that fail are part of the
   * result.
   */
  run(task: Task): Promise<LoadResult>;
}

/** @param env settings of the process besides those of this one. */
export function startLoadGenerator(env: Readonly<Record<string, string>> = {}): LoadGenerator {
  const child = fork(fileURLToPath(new URL('./generator.ts', import.meta.url)), [], {
    env: { ...process.env, ...env },
  });
  const ended = once(child, 'exit').then(([code, signal]): never => {
    throw new Error(`The load generator ended (${String(code ?? signal)})`);
  });
  ended.catch(() => undefined);
  return {
    async run(task) {
      const answered = new Promise<Reply>((resolve) => {
        child.once('message', (message: Reply) => resolve(message));
      });
      child.send(task);
      const reply = await Promise.race([answered, ended]);
      if ('error' in reply) throw new Error(`The load could not be made: ${reply.error}`);
      return reply.result;
    },
    [Symbol.dispose]: () => {
      if (child.connected) child.disconnect();
    },
  };
}
