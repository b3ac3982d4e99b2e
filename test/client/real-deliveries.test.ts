import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RealRegistry, startRealRegistry } from './real-registry.ts';
import { rollcall } from './rollcall-process.ts';

/** Each test runs the command several times, on a machine that may have other things to do. */
vi.setConfig({ testTimeout: 180_000 });

let registry: RealRegistry;
beforeAll(async () => {
  registry = await startRealRegistry();
});
afterAll(() => registry[Symbol.asyncDispose]());

const client = () => createRegistryClient({ servers: registry.url });
const run = (...args: string[]) => rollcall(args, { env: { ROLLCALL_SERVER: registry.url } });

/**
 * A notification that is given up, because its channel is gone before it could be sent.
 *
 * @returns its id.
 */
async function giveUp(service: string, secret?: string): Promise<string> {
  // An address that notifications must not go to: every attempt fails.
  await client().configureWebhooks({
    service_name: service,
    endpoints: { chat: 'http://127.0.0.1:1' },
    ...(secret === undefined ? {} : { secret }),
  });
  await client().notify({ service_name: service, channel: 'chat', message: 'Hello' }, { secret });
  await client().configureWebhooks({ service_name: service, endpoints: {} }, { secret });
  const dead = () => client().listDeliveries({ service_name: service, state: 'dead' });
  await vi.waitFor(async () => expect((await dead()).total).toBe(1), { timeout: 90_000, interval: 200 });
  return (await dead()).deliveries[0]?.id ?? '';
}

describe('against the real registry', () => {
  it('a notification that was given up is listed, shown and sent again', async () => {
    const id = await giveUp('shop');
    expect((await run('deliveries', 'shop')).out).toMatch(
      new RegExp(
        `^DELIVERY .*\\n${id} +shop +chat +notification +dead +\\d+ +\\d+s +the channel is no longer configured\\n$`,
      ),
    );
    const listed = JSON.parse((await run('deliveries', '--state', 'dead', '--limit', '1', '-o', 'json')).out);
    expect(listed).toMatchObject({ total: 1, deliveries: [{ id, payload: { message: 'Hello', severity: 'info' } }] });
    expect(JSON.parse((await run('delivery', id, '-o', 'json')).out)).toEqual(listed.deliveries[0]);
    expect((await run('delivery', id)).out).toMatch(/\nState: +dead\n[^]*\nMessage: +Hello\n/);
    expect(await run('deliveries', 'shop', '--state', 'pending')).toMatchObject({
      code: 0,
      out: '',
      err: 'There are no such notifications.\n',
    });
    const { attempts } = await client().getDelivery(id);
    expect(await run('replay', id)).toMatchObject({ code: 0, out: `Notification ${id} is sent again\n`, err: '' });
    await vi.waitFor(async () => expect((await client().getDelivery(id)).attempts).toBe(attempts + 1), {
      timeout: 90_000,
      interval: 200,
    });
  });

  it('is sent again only by who knows the secret, where the service has one', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'rollcall-secret-'));
    try {
      const file = join(directory, 'secret');
      await writeFile(file, 'a long top secret\n');
      const id = await giveUp('guarded', 'a long top secret');
      expect(await run('replay', id)).toMatchObject({ code: 1, out: '' });
      expect((await run('replay', id, '--secret-file', file)).code).toBe(0);
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it.each(['delivery', 'replay'])('%s of what is not there fails, and says so', async (command) => {
    for (const id of ['3f0c9a52-6c1e-4d0b-9b57-2f6a1d8e4c11', 'a/b']) {
      expect(await run(command, id)).toEqual({
        code: 1,
        signal: null,
        out: '',
        err: 'rollcall: There is no notification of this id\n',
      });
    }
  });
});
