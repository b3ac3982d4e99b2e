import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePorts } from '@rollcall/local/ports.ts';
import { startProcess } from '@rollcall/local/processes.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { podsOf, renderChart } from './chart.ts';

async function accepts(port: number, password: string): Promise<boolean> {
  const redis = new Redis({ host: '127.0.0.1', port, password, lazyConnect: true, retryStrategy: () => null });
  redis.on('error', () => undefined);
  try {
    return (await redis.ping()) === 'PONG';
  } catch {
    return false;
  } finally {
    redis.disconnect();
  }
}

test.each([['abcXYZ019'], ['two words # "and" \'more\' \\ $HOME `id` \\n']])(
  'the embedded Redis has the password of the Secret: %s',
  async (password) => {
    const pod = podsOf(await renderChart()).find(({ name }) => name === 'rollcall-redis');
    const [command = '', ...args] = (pod?.template.spec.containers[0]?.['command'] ?? []) as readonly string[];
    const binary = inject('redisBinary');
    const directory = await mkdtemp(join(inject('temporaryDirectory'), 'chart-redis-'));
    const [port = 0] = await freePorts(1);
    // As in the container, but for where it listens and keeps its files.
    const elsewhere = `#!/bin/sh
sed 's|^dir .*|dir "${directory}"|' > '${directory}/redis.conf'
exec '${binary.file}' '${directory}/redis.conf' --bind 127.0.0.1 --port ${port}
`;
    await writeFile(join(directory, 'redis-server'), elsewhere, { mode: 0o755 });
    const server = await startProcess({
      name: 'redis',
      command,
      args,
      logFile: join(directory, 'redis.log'),
      env: { PATH: `${directory}:${process.env['PATH']}`, REDISCLI_AUTH: password, ...binary.env },
    });
    try {
      const { failed } = server;
      await waitUntil('it accepts the password', () => accepts(port, password), { timeoutMs: 30_000, failed });
      expect(await accepts(port, 'another')).toBe(false);
    } finally {
      await server.stop();
    }
  },
);
