import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { accessFromEnvironment, accessFromFile } from './kubeconfig.ts';

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rollcall-kubeconfig-'));
  await mkdir(join(directory, '.kube'));
});

afterAll(() => rm(directory, { recursive: true }));

async function write(name: string, content: string): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, content);
  return path;
}

const first = `
current-context: one
clusters:
- {name: here, cluster: {server: "https://first:6443", certificate-authority: ca.crt}}
users:
- {name: me, user: {tokenFile: secrets/token, client-key: /absolute/key, exec: null}}
contexts:
- {name: one, context: {cluster: here, user: me, namespace: mine}}
`;

const second = `
current-context: two
clusters:
- {name: here, cluster: {server: "https://second:6443"}}
- {name: there, cluster: {server: "https://third:6443"}}
users: null
contexts:
- {name: two, context: {cluster: there}}
`;

test('paths are relative to the file, and absent values may be written as null', async () => {
  const { cluster, user, namespace } = await accessFromFile(await write('first', first));
  expect(cluster['certificate-authority']).toBe(join(directory, 'ca.crt'));
  expect(user).toEqual({ tokenFile: join(directory, 'secrets/token'), 'client-key': '/absolute/key' });
  expect(namespace).toBe('mine');
});

test('of several files the first that names a thing counts, and missing files are skipped', async () => {
  const [a, b] = [await write('first', first), await write('second', second)];
  expect((await accessFromEnvironment({ KUBECONFIG: `${a}:${b}` })).cluster.server).toBe('https://first:6443');
  expect((await accessFromEnvironment({ KUBECONFIG: `${b}:${a}` })).cluster.server).toBe('https://third:6443');
  expect((await accessFromEnvironment({ KUBECONFIG: `/nowhere:${b}` })).namespace).toBe('default');
});

test('without KUBECONFIG it is the file in the home directory', async () => {
  await write('.kube/config', second);
  expect((await accessFromEnvironment({ HOME: directory })).cluster.server).toBe('https://third:6443');
});

test('commands without a slash are left to the PATH, others are relative to the file', async () => {
  const bare = await accessFromFile(
    await write('bare', first.replace('exec: null', 'exec: {command: login, args: [a]}')),
  );
  expect(bare.user.exec?.command).toBe('login');
  const relative = await accessFromFile(
    await write('relative', first.replace('exec: null', 'exec: {command: ./bin/login}')),
  );
  expect(relative.user.exec?.command).toBe(join(directory, 'bin/login'));
});

test.each([
  ['no YAML', 'users: [{token: hunter2', /not valid YAML/],
  ['wrong types', first.replace('secrets/token', '[hunter2]'), /\/users\/0\/user\/tokenFile/],
  ['no server', first.replace('server: "https://first:6443", ', ''), /clusters\/0\/cluster/],
  ['no current context', first.replace('current-context: one', 'current-context: ""'), /no current context/],
  ['an unknown cluster', first.replace('cluster: here', 'cluster: gone'), /no cluster "gone"/],
  ['an unknown user', first.replace('user: me', 'user: gone'), /no user "gone"/],
])('%s is said without repeating what the file holds', async (_fault, content, message) => {
  const path = await write('wrong', content);
  await expect(accessFromFile(path)).rejects.toThrow(message);
  await expect(accessFromFile(path)).rejects.not.toThrow(/hunter2/);
});

test('nothing to be found is an error that says where was looked', async () => {
  await expect(accessFromEnvironment({ KUBECONFIG: '/nowhere' })).rejects.toThrow('/nowhere');
});
