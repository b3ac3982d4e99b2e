import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive } from '@rollcall/local/file-lock.ts';
import { type ManagedProcess, startProcess } from '@rollcall/local/processes.ts';
import { type Supervised, type SupervisorOptions, supervise } from '@rollcall/local/supervisor.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { expect, inject, onTestFinished, test } from 'vitest';

const TIMEOUT_MS = 60_000;
const timeout = { timeout: TIMEOUT_MS };

interface Fixture {
  readonly options: SupervisorOptions;
  readonly started: ManagedProcess[];
  readonly lines: string[];
  /** What the script does from its next start on. */
  readonly rewrite: (script: string) => Promise<void>;
}

/** A script that is ready as soon as it has printed `ready` with its process id. */
async function fixture(script: string, pauseMs: number): Promise<Fixture> {
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'supervisor-'));
  const file = join(directory, 'script.mjs');
  const logFile = join(directory, 'script.log');
  const started: ManagedProcess[] = [];
  const lines: string[] = [];
  const rewrite = (text: string) => writeFile(file, text);
  await rewrite(script);
  const options: SupervisorOptions = {
    name: 'script',
    async start() {
      const script = await startProcess({ name: 'script', command: process.execPath, args: [file], logFile });
      started.push(script);
      return script;
    },
    ready: ({ pid, failed }) =>
      waitUntil('the script is ready', async () => (await readFile(logFile, 'utf8')).includes(`ready ${pid}\n`), {
        timeoutMs: TIMEOUT_MS,
        failed,
      }),
    log: (line) => void lines.push(line),
    graceMs: 1000,
    pauseMs,
  };
  return { options, started, lines, rewrite };
}

async function start(options: SupervisorOptions): Promise<Supervised> {
  const supervised = await supervise(options);
  onTestFinished(() => supervised.stop());
  return supervised;
}

const SOUND = `console.log('ready ' + process.pid); setInterval(() => {}, 1000);`;
const BROKEN = `console.error('no configuration'); process.exit(3);`;
const QUICK_MS = 10;

test('what is killed is started again, and the log says so', timeout, async () => {
  const { options, started, lines } = await fixture(SOUND, QUICK_MS);
  const supervised = await start(options);
  process.kill(started[0]?.pid ?? 0, 'SIGKILL');
  await expect
    .poll(() => lines, timeout)
    .toEqual([
      expect.stringMatching(/^The script ended by SIGKILL: it is started again in 0\.01 s \(log: .*script\.log\)$/),
      'The script works again',
    ]);
  expect(started).toHaveLength(2);
  await supervised.stop();
  expect(started.map(({ pid }) => isAlive(pid))).toEqual([false, false]);
});

test('what does not start is reported at once', timeout, async () => {
  const { options, started } = await fixture(BROKEN, QUICK_MS);
  await expect(supervise(options)).rejects.toThrow(/^script ended with code 3\.[^]*no configuration$/);
  expect(started).toHaveLength(1);
});

test('what keeps ending before it works is given up, with the end of its log', timeout, async () => {
  const { options, started, rewrite } = await fixture(SOUND, QUICK_MS);
  const supervised = await start(options);
  await rewrite(BROKEN);
  process.kill(started[0]?.pid ?? 0, 'SIGKILL');
  await expect(supervised.failed).rejects.toThrow(
    /^The script cannot be kept running: script ended with code 3\.[^]*no conf/,
  );
  expect(started).toHaveLength(6);
});

test('stopping while a restart is waited for starts nothing', timeout, async () => {
  const { options, started, lines } = await fixture(SOUND, 3_600_000);
  const supervised = await start(options);
  process.kill(started[0]?.pid ?? 0, 'SIGKILL');
  await expect.poll(() => lines.length, timeout).toBe(1);
  await supervised.stop();
  expect(started).toHaveLength(1);
});
