import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startAll } from './all.ts';
import { readSettings } from './settings.ts';

test('every simulator starts under a name of its own, and says how to be its client', async () => {
  await using started = new AsyncDisposableStack();
  const simulators = await startAll(0);
  for (const simulator of simulators) started.use(simulator);
  expect(new Set(simulators.map(({ name }) => name)).size).toBe(simulators.length);
  for (const { url } of simulators) {
    expect(new URL(url).hostname).toBe('127.0.0.1');
    const answer = await fetch(`${url}/_control/credentials`);
    expect(JSON.stringify(await answer.json())).toContain(url);
  }
});

test('none is left behind where one cannot start', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  const taken = typeof address === 'object' && address !== null ? address.port : 0;
  await expect(startAll(taken)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  server.close();
});

async function settingsOf(content: unknown) {
  const directory = await mkdtemp(join(tmpdir(), 'simulators-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, 'settings.json');
  await writeFile(file, JSON.stringify(content));
  return await readSettings(file);
}

function newKey(type: 'ec' | 'rsa'): string {
  const { privateKey } =
    type === 'ec'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength: 2048 });
  return privateKey.export({ type: 'pkcs8', format: 'pem' });
}

test('started again with the same settings, each is the same to its clients', async () => {
  const settings = await settingsOf({
    twilio: { accountSid: `AC${'a'.repeat(32)}`, authToken: 'told' },
    payfast: { merchant: { id: '10000101', key: 'told-key', passphrase: 'told-passphrase' } },
    bulksms: { tokenId: 'told', tokenSecret: 'told', webhookUrl: 'http://127.0.0.1:9/bulksms?token=told' },
    clickatell: { apiKey: 'told', callbackUrl: 'http://127.0.0.1:9/clickatell?token=told' },
    sendgrid: { apiKey: 'told', privateKey: newKey('ec'), eventWebhookUrl: 'http://127.0.0.1:9/sendgrid' },
    yoco: { secretKey: 'sk_live_told', webhook: { url: 'http://127.0.0.1:9/yoco', secret: 'whsec_dG9sZA==' } },
    fcm: { projectId: 'told', privateKey: newKey('rsa') },
    stripe: { secretKey: 'sk_test_told', webhook: { url: 'http://127.0.0.1:9/stripe', secret: 'whsec_told' } },
  });
  const asked = async () => {
    const simulators = await startAll(0, settings);
    const answers = simulators.map(async ({ url }) => {
      const answer = await (await fetch(`${url}/_control/credentials`)).text();
      return answer.replaceAll(url, '');
    });
    const credentials = await Promise.all(answers);
    await Promise.all(simulators.map((simulator) => simulator.stop()));
    return credentials;
  };
  const first = await asked();
  for (const credentials of first) expect(credentials).toContain('told');
  expect(await asked()).toEqual(first);
});

test.each([
  [{ twilio: { port: 'many' } }, /\/twilio\/port/],
  [{ twilio: { tokens: 1 } }, /\/twilio/],
  [{ nobody: {} }, /\/nobody/],
])('settings %j are refused', async (settings, fault) => {
  await expect(settingsOf(settings)).rejects.toThrow(fault);
});
