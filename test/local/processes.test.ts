import { spawn } from 'node:child_process';
import { mkdtemp, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { isAlive } from '@rollcall/local/file-lock.ts';
import { freePorts, isPortFree, preferredPort } from '@rollcall/local/ports.ts';
import { startProcess } from '@rollcall/local/processes.ts';
import { REPOSITORY } from '@rollcall/local/services.ts';
import { describe, expect, inject, test } from 'vitest';

const directory = await mkdtemp(join(inject('temporaryDirectory'), 'processes-'));

describe('startProcess', () => {
  const logFile = join(directory, 'log', 'node.log');
  const node = (script: string) =>
    startProcess({ name: 'script', command: process.execPath, args: ['-e', script], logFile });
  const printed = async (text: string): Promise<void> => {
    await expect.poll(() => readFile(logFile, 'utf8'), { timeout: 20_000 }).toContain(text);
  };

  test('stops a program that ends when it is asked to', async () => {
    const script = await node(
      `process.on('SIGTERM', () => process.exit(7)); console.log('polite'); setInterval(Date, 1e6)`,
    );
    await printed('polite');
    await script.stop();
    expect(await script.exited).toEqual({ code: 7, signal: null });
    expect(isAlive(script.pid)).toBe(false);
    await script.stop();
  });

  test('kills a program that does not', async () => {
    const script = await node(`process.on('SIGTERM', () => {}); console.log('stubborn'); setInterval(Date, 1e6)`);
    await printed('stubborn');
    await script.stop({ graceMs: 50 });
    expect(await script.exited).toEqual({ code: null, signal: 'SIGKILL' });
  });

  test('reports one that ends by itself, with the end of its log', async () => {
    const script = await node(`console.error('disk is full'); process.exitCode = 3`);
    await expect(script.failed).rejects.toThrow(/^script ended with code 3\.[^]*disk is full$/);
  });

  test('gives it nothing of our environment but the PATH', async () => {
    const script = await node('console.log(Object.keys(process.env).join())');
    await script.exited;
    const lines = (await readFile(logFile, 'utf8')).trimEnd().split('\n');
    expect(lines.at(-1)).toBe('PATH');
  });
});

test('freePorts finds different ports that can be listened on', async () => {
  const ports = await freePorts(5);
  expect(new Set(ports).size).toBe(5);
  expect(await Promise.all(ports.map(isPortFree))).toEqual([true, true, true, true, true]);
});

test('freePorts gives no two processes the same port', async () => {
  const url = pathToFileURL(join(REPOSITORY, 'local/src/ports.ts')).href;
  // Neither ends before both have theirs.
  const script = `import { freePorts } from ${JSON.stringify(url)};
    console.log(JSON.stringify(await freePorts(500)));
    setInterval(() => {}, 1000);`;
  const finders = Array.from({ length: 2 }, () => spawn(process.execPath, ['--input-type=module', '-e', script]));
  const found = await Promise.all(
    finders.map(async ({ stdout }): Promise<number[]> => {
      for await (const line of createInterface({ input: stdout })) return JSON.parse(line);
      return [];
    }),
  );
  for (const finder of finders) finder.kill('SIGKILL');
  expect(new Set(found.flat()).size).toBe(1000);
});

test('preferredPort chooses another port when the preferred one is in use', async () => {
  const [port = 0] = await freePorts(1);
  expect(await preferredPort(port)).toBe(port);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  expect(await preferredPort(port)).not.toBe(port);
  await new Promise((resolve) => server.close(resolve));
});
