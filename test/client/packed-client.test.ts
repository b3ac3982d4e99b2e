import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { REPOSITORY } from '@rollcall/local/services.ts';
import { expect, test } from 'vitest';
import { startContractServer } from './contract-server.ts';

const run = promisify(execFile);

/** A program of somebody else, which knows nothing of this repository. */
const PROGRAM = `
import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { register } from '@rollcall/client/registration.ts';

const servers = process.argv[2] ?? '';
const registration = register({ servers, name: 'shop', url: 'http://shop:8080' });
await registration.registered;
const { total } = await createRegistryClient({ servers }).listServices();
await registration[Symbol.asyncDispose]();
console.log(total);
`;

/** Installed as npm would, without asking a registry for what it depends on. */
async function installClient(project: string): Promise<void> {
  await run('node', [join(REPOSITORY, 'tools', 'pack-client.ts'), '--pack-destination', project]);
  const file = (await readdir(project)).find((name) => name.endsWith('.tgz')) ?? '';
  const target = join(project, 'node_modules', '@rollcall', 'client');
  await mkdir(target, { recursive: true });
  await run('tar', ['-xzf', join(project, file), '--strip-components=1', '-C', target]);
  const parser = createRequire(import.meta.url).resolve('eventsource-parser/package.json');
  await symlink(dirname(parser), join(project, 'node_modules', 'eventsource-parser'));
}

test('the packed client has JavaScript and types for a program elsewhere', async () => {
  const project = await mkdtemp(join(tmpdir(), 'rollcall-packed-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(project, { recursive: true }));
  const server = stack.use(await startContractServer());
  await installClient(project);
  const types = join(REPOSITORY, 'node_modules', '@types');
  const compilerOptions = { module: 'nodenext', target: 'esnext', strict: true, types: ['node'], typeRoots: [types] };
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }));
  await writeFile(join(project, 'package.json'), '{"type":"module"}');
  await writeFile(join(project, 'program.ts'), PROGRAM);
  await run('tsc', ['--project', project]);
  expect((await run('node', [join(project, 'program.js'), server.url])).stdout).toBe('1\n');
  expect(server.services.size).toBe(0);
});
