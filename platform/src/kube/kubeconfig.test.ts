import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { accessFromEnvironment, accessFromFile } from './access.ts';

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
- {name: me, user: {token: hunter2}}
contexts:
- {name: one, context: {cluster: here, user: me, namespace: mine}}
`;

const second = `
current-context: two
clusters:
- {name: there, cluster: {server: "https://third:6443"}}
users: null
contexts:
- {name: two, context: {cluster: there}}
`;

test('paths are relative to the file', async () => {
  const access = await accessFromFile(await write('first', first));
  await write('ca.crt', 'an authority');
  expect(access).toMatchObject({ server: 'https://first:6443', namespace: 'mine' });
  expect(await access.readCredentials(false)).toEqual({
    tls: { ca: 'an authority' },
    headers: { authorization: 'Bearer hunter2' },
  });
});

test('files are read anew once the server refused what they said', async () => {
  const path = await write('rotated', first.replace('certificate-authority: ca.crt', ''));
  const access = await accessFromFile(path);
  await write('rotated', first.replace('certificate-authority: ca.crt', '').replace('hunter2', 'hunter3'));
  expect((await access.readCredentials(false)).headers['authorization']).toBe('Bearer hunter2');
  expect((await access.readCredentials(true)).headers['authorization']).toBe('Bearer hunter3');
});

test('of several files the first that names a context counts, and missing files are skipped', async () => {
  const [a, b] = [await write('first', first), await write('second', second)];
  expect((await accessFromEnvironment({ KUBECONFIG: `${a}:${b}` })).server).toBe('https://first:6443');
  expect((await accessFromEnvironment({ KUBECONFIG: `${b}:${a}` })).server).toBe('https://third:6443');
  expect((await accessFromEnvironment({ KUBECONFIG: `/nowhere:${b}` })).namespace).toBe('default');
});

test('without KUBECONFIG it is the pod, and outside of one the file in the home directory', async () => {
  await write('.kube/config', second);
  expect((await accessFromEnvironment({ HOME: directory })).server).toBe('https://third:6443');
  await Promise.all([write('namespace', 'here\n'), write('token', 'of-the-pod\n'), write('ca.crt', 'an authority')]);
  const pod = { KUBERNETES_SERVICE_HOST: '::1', KUBERNETES_SERVICE_PORT: '443' };
  const access = await accessFromEnvironment({
    ...pod,
    HOME: directory,
    ROLLCALL_SERVICE_ACCOUNT_DIRECTORY: directory,
  });
  expect(access).toMatchObject({ server: 'https://[::1]:443', namespace: 'here' });
  expect((await access.readCredentials(false)).headers).toEqual({ authorization: 'Bearer of-the-pod' });
});

test.each([
  ['no YAML', 'users: [{token: hunter2', /is not a kubeconfig/],
  ['no server', first.replace('server: "https://first:6443", ', ''), /is not a kubeconfig/],
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
