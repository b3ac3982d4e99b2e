import { createEventRecorder } from '@rollcall/operator/runtime/events.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { describe, expect, test } from 'vitest';
import { createWorld, register, until, type World } from './fixtures.ts';

async function startRecorder(world: World, connection: KubeConnection = world.connection) {
  let dropped = 0;
  const recorder = createEventRecorder({
    connection,
    clock: systemClock,
    log: createLogger('events', 'silent'),
    component: 'rollcall-operator',
    host: 'test-host',
    onDropped: () => {
      dropped += 1;
    },
  });
  await recorder.start();
  world.onTestFinished(() => recorder.stop());
  return { recorder, dropped: () => dropped };
}

describe.concurrent('Events', () => {
  test('the same again raises the count; another message is another Event', async (context) => {
    const world = await createWorld(context);
    const regarding = await register(world, 'shop', { source: 'Manifest' });
    const { recorder, dropped } = await startRecorder(world);
    const occurrence = { regarding, type: 'Warning', reason: 'Tested', message: 'once more' } as const;
    for (let time = 0; time < 5; time += 1) recorder.record(occurrence);
    recorder.record({ ...occurrence, message: 'something else' });
    await until('all are written', async () => {
      const events = await world.events('shop');
      return events.length === 2 && events.some(({ count }) => count === 5);
    });
    expect(await world.events('shop')).toContainEqual(
      expect.objectContaining({
        type: 'Warning',
        reason: 'Tested',
        message: 'once more',
        count: 5,
        source: { component: 'rollcall-operator', host: 'test-host' },
        involvedObject: expect.objectContaining({ kind: 'ServiceRegistration', uid: regarding.metadata.uid }),
      }),
    );
    expect(dropped()).toBe(0);
  });

  test('an Event that was deleted meanwhile is made anew', async (context) => {
    const world = await createWorld(context);
    const regarding = await register(world, 'shop', { source: 'Manifest' });
    const { recorder } = await startRecorder(world);
    const occurrence = { regarding, type: 'Normal', reason: 'Tested', message: 'again' } as const;
    recorder.record(occurrence);
    await until('it is written', async () => (await world.events('shop')).length === 1);
    await world.connection.request({ method: 'DELETE', path: `/api/v1/namespaces/${world.namespace}/events` });
    recorder.record(occurrence);
    await until('it is written again', async () => (await world.events('shop')).length === 1);
    expect(await world.events('shop')).toMatchObject([{ count: 1 }]);
  });

  test('an object that causes too many loses the rest, and others do not suffer', async (context) => {
    const world = await createWorld(context);
    const [noisy, quiet] = [await register(world, 'noisy', {}), await register(world, 'quiet', {})];
    const { recorder, dropped } = await startRecorder(world);
    for (let time = 0; time < 40; time += 1) {
      recorder.record({ regarding: noisy, type: 'Normal', reason: 'Tested', message: `message ${time}` });
    }
    recorder.record({ regarding: quiet, type: 'Normal', reason: 'Tested', message: 'only one' });
    await until('the last is written', async () => (await world.events('quiet')).length === 1);
    expect(await world.events('noisy')).toHaveLength(25);
    expect(dropped()).toBe(15);
  });

  test('failures are counted, and nothing else happens', async (context) => {
    const world = await createWorld(context);
    const regarding = await register(world, 'shop', {});
    const nowhere = { ...regarding, metadata: { ...regarding.metadata, namespace: 'no-such-namespace' } };
    const { recorder, dropped } = await startRecorder(world);
    recorder.record({ regarding: nowhere, type: 'Normal', reason: 'Tested', message: 'lost' });
    await until('it is counted', async () => dropped() === 1);
    await recorder.stop();
    recorder.record({ regarding, type: 'Normal', reason: 'Tested', message: 'too late' });
    expect(dropped()).toBe(2);
  });
});
