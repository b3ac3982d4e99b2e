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
async function fixture(script: string, backOff: SupervisorOptions['backOff']): Promise<Fixture> {
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
    ...(backOff === undefined ? {} : { backOff }),
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
const QUICK = { baseMs: 10, maxMs: 40, resetMs: 600_000 };

test('what is killed is started again, and the log says so', timeout, async () => {
  const { options, started, lines } = await fixture(SOUND, QUICK);
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

test('each restart waits twice as long, up to a limit, until the process has worked for a while', timeout, async () => {
  // Long enough for it to be found ready before it ends, on a busy machine too.
  const soon = `${SOUND} setTimeout(() => process.exit(1), 1000);`;
  const { options, lines } = await fixture(soon, QUICK);
  const supervised = await start(options);
  const delays = () => lines.flatMap((line) => /again in ([\d.]+) s/.exec(line)?.[1] ?? []);
  await expect.poll(delays, timeout).toEqual(expect.arrayContaining(['0.01', '0.02', '0.04']));
  await expect.poll(() => delays().length, timeout).toBeGreaterThan(4);
  expect(delays().slice(0, 5)).toEqual(['0.01', '0.02', '0.04', '0.04', '0.04']);
  await supervised.stop();

  const steady = await fixture(soon, { ...QUICK, resetMs: 0 });
  await start(steady.options);
  await expect.poll(() => steady.lines.filter((line) => line.includes('again in')).length, timeout).toBeGreaterThan(3);
  expect(steady.lines.join('\n')).not.toContain('again in 0.02 s');
});

test('what does not start is reported at once', timeout, async () => {
  const { options, started } = await fixture(BROKEN, QUICK);
  await expect(supervise(options)).rejects.toThrow(/^script ended with code 3\.[^]*no configuration$/);
  expect(started).toHaveLength(1);
});

test('what keeps ending before it works is given up, with the end of its log', timeout, async () => {
  const { options, started, rewrite } = await fixture(SOUND, QUICK);
  const supervised = await start(options);
  await rewrite(BROKEN);
  process.kill(started[0]?.pid ?? 0, 'SIGKILL');
  await expect(supervised.failed).rejects.toThrow(
    /^The script cannot be kept running: script ended with code 3\.[^]*no conf/,
  );
  expect(started).toHaveLength(6);
});

test('stopping while a restart is waited for starts nothing', timeout, async () => {
  const { options, started, lines } = await fixture(SOUND, { baseMs: 3_600_000, maxMs: 3_600_000, resetMs: 0 });
  const supervised = await start(options);
  process.kill(started[0]?.pid ?? 0, 'SIGKILL');
  await expect.poll(() => lines.length, timeout).toBe(1);
  await supervised.stop();
  expect(started).toHaveLength(1);
});
