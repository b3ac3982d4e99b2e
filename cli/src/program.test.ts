import { describe, expect, it } from 'vitest';
import { runCli } from './program.ts';

/** Runs a command line that makes no request. */
async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  let out = '';
  let err = '';
  const code = await runCli(args, {
    env,
    cwd: '/',
    now: () => new Date(0),
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    hasTerminal: false,
  });
  return { code, out, err };
}

const commands = [
  'services',
  'get',
  'watch',
  'register',
  'unregister',
  'run',
  'deploy',
  'rollback',
  'jobs',
  'job',
  'promote',
  'abort',
  'history',
  'stats',
  'clients',
  'messages',
  'message',
  'retry-message',
  'cancel-message',
  'payments',
  'payment',
  'refund',
  'refunds',
  'resolve-payment',
  'resolve-refund',
  'graph',
];

describe('help', () => {
  it('of the program names every command, the exit codes and the settings', async () => {
    const { code, out, err } = await run(['--help']);
    expect([code, err]).toEqual([0, '']);
    for (const word of [...commands, 'Exit codes:', 'ROLLCALL_SERVER', 'ROLLCALL_TOKEN', '.local/endpoints.json']) {
      expect(out).toContain(word);
    }
  });

  it.each(commands)('of %s has examples, the exit codes and the global options', async (command) => {
    const { code, out } = await run([command, '--help']);
    expect(code).toBe(0);
    for (const word of [`$ `, `rollcall ${command}`, 'Examples:', 'Exit codes:', '--server', '--output']) {
      expect(out).toContain(word);
    }
  });

  it('is shown when no command is given, as an error', async () => {
    expect(await run([])).toMatchObject({ code: 2, out: '', err: expect.stringContaining('Usage: rollcall') });
  });

  it('can be asked for by a command, of all or of one command', async () => {
    expect(await run(['help'])).toMatchObject({ code: 0, out: expect.stringContaining('Usage: rollcall [options]') });
    const { code, out } = await run(['help', 'run']);
    expect([code, out]).toEqual([0, expect.stringContaining('Usage: rollcall run')]);
  });
});

describe('wrong usage', () => {
  it.each([
    { args: ['servcies'], message: 'Did you mean services?' },
    { args: ['get'], message: "missing required argument 'name'" },
    { args: ['get', 'a', 'b'], message: 'too many arguments' },
    { args: ['services', '--nonsense'], message: "unknown option '--nonsense'" },
    { args: ['services', '-o', 'yaml'], message: 'Allowed choices are table, json' },
    { args: ['services', '--capability', 'soap'], message: 'Allowed choices are rest, graphql, grpc, mcp' },
    {
      args: ['register', 'shop', 'http://x', '--capability', 'rest,soap'],
      message: 'Allowed: rest, graphql, grpc, mcp',
    },
    { args: ['register', 'shop', 'http://x', '--weight', 'much'], message: 'at least 1' },
    { args: ['register', 'shop', 'http://x', '--metadata', 'team'], message: 'It must be key=value' },
    { args: ['history', '--limit', '0'], message: 'at least 1' },
    { args: ['history', '--limit', '1e3'], message: 'at least 1' },
    { args: ['history', '--limit', 'many'], message: 'at least 1' },
    { args: ['run', '--name', 'shop', '--', 'true'], message: "required option '--url <url>' not specified" },
    { args: ['run', '--name', 'shop', '--url', 'http://x', 'node', '--watch'], message: "unknown option '--watch'" },
    { args: ['deploy', 'shop', '1.4.0'], message: '--image or --binary is needed' },
    { args: ['deploy', 'shop', '--image', 'shop:1'], message: "missing required argument 'version'" },
    {
      args: ['deploy', 'shop', '1', '--image', 'shop:1', '--binary', 'https://x/y'],
      message: "option '--image <reference>' cannot be used with option '--binary <url>'",
    },
    {
      args: ['deploy', 'shop', '1', '--image', 'shop:1', '--strategy', 'magic'],
      message: 'Allowed choices are rolling, blue-green, canary',
    },
    {
      args: ['deploy', 'shop', '1', '--image', 'shop:1', '--timeout', '5'],
      message: '--timeout is of use with --wait',
    },
    { args: ['deploy', 'shop', '1', '--image', 'shop:1', '--wait', '--timeout', '0'], message: 'at least 1' },
    { args: ['rollback', 'shop', '1', '--secret-file', '/nowhere'], message: '--secret-file: ' },
    { args: ['jobs', '--phase', 'Sleeping'], message: 'Allowed choices are Pending, Progressing' },
    { args: ['graph', 'check', 'a.graphql'], message: "required option '--service <name>' not specified" },
    { args: ['graph', 'check', '/nowhere', '--service', 'shop'], message: '<file>: ' },
    { args: ['graph', 'history', '--limit', '0'], message: 'at least 1' },
    { args: ['graph', 'publish', 'a.json'], message: "required option '--client <name>' not specified" },
    { args: ['graph', 'publish', '/nowhere', '--client', 'web'], message: '<path>: ' },
    { args: ['job'], message: "missing required argument 'job'" },
    { args: ['services', '--server', 'nonsense'], message: '--server: a registry URL is not a valid URL' },
    { args: ['services', '--server', ''], message: '--server: at least one registry URL is needed' },
  ])('$args: $message', async ({ args, message }) => {
    const { code, out, err } = await run(args);
    expect(err).toContain(message);
    expect([code, out]).toEqual([2, '']);
  });

  it('names the variable that holds the wrong URL, and not the password in it', async () => {
    const { code, err } = await run(['services'], { ROLLCALL_SERVER: 'http://me:secret@host' });
    expect(err).toBe('rollcall: ROLLCALL_SERVER: a registry URL must not carry credentials\n');
    expect(code).toBe(2);
  });
});

it.each([
  { args: ['--gateway', 'http://127.0.0.1:9'], env: {}, source: '--gateway' },
  { args: [], env: { ROLLCALL_GATEWAY: 'http://127.0.0.1:9' }, source: 'ROLLCALL_GATEWAY' },
])('says who chose the gateway that does not answer: $source', async ({ args, env, source }) => {
  // Nobody is called: fetch takes no such port.
  const { code, err } = await run(['messages', '--token', 'a.b.c', ...args], env);
  expect(err).toMatch(
    new RegExp(`^rollcall: http://127.0.0.1:9 cannot be reached: .*\\(gateway chosen by ${source}\\)\n$`),
  );
  expect(code).toBe(4);
});

it('prints its version', async () => {
  expect(await run(['--version'])).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
});
