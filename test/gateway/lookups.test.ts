import type { LookupAddress } from 'node:dns';
import { setTimeout as sleep } from 'node:timers/promises';
import { defaultBreakerPolicy } from '@rollcall/platform/outbound/breaker.ts';
import { createLookups } from '@rollcall/platform/outbound/lookups.ts';
import { afterAll, expect, test } from 'vitest';
import { createEchoClient, startBackend, startProxy, TOKEN } from './grpc-fixture.ts';
import { portOf, restFixture, targetNamed } from './rest-fixture.ts';

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());
const { serve, newProxy, frontOf } = restFixture(stack);

const HERE = [{ address: '127.0.0.1', family: 4 }];
const ATTEMPTS = defaultBreakerPolicy.consecutiveFailures + 1;

/** A server of names that does not answer until it is told to, like libuv's lookups. */
function silentNames() {
  const asked: string[] = [];
  const held: PromiseWithResolvers<readonly LookupAddress[]>[] = [];
  let isSilent = true;
  const resolve = (hostname: string): Promise<readonly LookupAddress[]> => {
    asked.push(hostname);
    if (!isSilent) return Promise.resolve(HERE);
    const lookup = Promise.withResolvers<readonly LookupAddress[]>();
    held.push(lookup);
    return lookup.promise;
  };
  return {
    asked,
    resolve,
    async speak() {
      isSilent = false;
      for (const { resolve: answer } of held) answer(HERE);
      await sleep(0);
    },
  };
}

test('requests to a name that hangs hold one lookup, and the service is there again as soon as its name is', async () => {
  const names = silentNames();
  const lookups = createLookups(names.resolve);
  const port = portOf(await serve('127.0.0.1', 0, (_request, response) => void response.end('fine')));
  const target = targetNamed('shop.test', port, lookups);
  const url = await frontOf(target, newProxy(lookups));
  const status = async () => (await fetch(url)).status;
  expect(await Promise.all(Array.from({ length: 10 }, status))).toEqual(Array.from({ length: 10 }, () => 502));
  const startedAtMs = performance.now();
  for (let count = 0; count < ATTEMPTS; count += 1) expect(await status()).toBe(502);
  // None of them has waited for the lookup.
  expect(performance.now() - startedAtMs).toBeLessThan(5000);
  expect(names.asked).toEqual(['shop.test']);
  expect(target.endpoints.states()).toEqual(['closed']);
  await names.speak();
  expect(await status()).toBe(200);
});

test('calls to a name that hangs hold one lookup, and do not open the breaker', async () => {
  const names = silentNames();
  const backend = stack.use(await startBackend());
  const proxy = stack.use(await startProxy({ backendPort: backend.port, resolve: names.resolve }));
  const { service, endpoints } = targetNamed('rollcall.test', backend.port, { resolve: async () => HERE });
  proxy.registered.set('rollcall.test', { service, endpoints });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  for (let count = 0; count < ATTEMPTS; count += 1) {
    const { error } = await client.unary(Buffer.from('lost'));
    expect(error).toMatchObject({ code: 14 });
  }
  expect(names.asked).toEqual(['rollcall.test']);
  expect(endpoints.states()).toEqual(['closed']);
  await names.speak();
  expect((await client.unary(Buffer.from('found'))).message?.toString()).toBe('found');
});
