import { describe, expect, test } from 'vitest';
import { createInstances, representativeOf } from './instances.ts';
import type { Registration } from './registration.ts';

function instance(instanceId: string, more: Partial<Registration> = {}): Registration {
  const second = new Date(0);
  return {
    serviceName: 'shop',
    instanceId,
    url: `http://${instanceId}`,
    id: `uid-${instanceId}`,
    serviceId: 'uid-a',
    capabilities: [],
    source: 'API',
    ttlSeconds: 60,
    createdAt: second,
    registeredAt: second,
    phase: 'Registered',
    currentVersion: undefined,
    health: undefined,
    owner: undefined,
    version: 1,
    ...more,
  };
}

const later = (seconds: number) => ({ createdAt: new Date(seconds * 1000), registeredAt: new Date(seconds * 1000) });

const failing = { checkResult: { status: 'Failing', since: new Date(0), message: 'it answered 503' } } as const;

describe('what stands for a name', () => {
  test.each<[string, readonly Registration[], string | undefined]>([
    ['nothing where there is none', [], undefined],
    ['nothing where all have expired', [instance('a', { phase: 'Expired' })], undefined],
    ['the one that has been registered longest', [instance('a', later(2)), instance('b', later(1))], 'b'],
    ['of the same second, always the same one', [instance('c'), instance('b')], 'b'],
    ['of the same second, whichever comes first', [instance('b'), instance('c')], 'b'],
    ['of the same second, the first one of the name', [instance('0'), instance('a')], 'a'],
    ['none that has expired', [instance('a', { phase: 'Expired' }), instance('b', later(1))], 'b'],
    ['none that is ailing', [instance('a', { health: 'Draining' }), instance('b', later(1))], 'b'],
    ['one with another word for its health', [instance('a', { health: 'ok' }), instance('b', later(1))], 'a'],
    ['none whose check fails', [instance('a', failing), instance('b', later(1))], 'b'],
    [
      'an ailing one where all are',
      [instance('a', { health: 'degraded' }), instance('b', { ...later(1), health: 'unhealthy' })],
      'a',
    ],
  ])('is %s', (_what, instances, id) => {
    expect(representativeOf(instances)?.instanceId).toBe(id);
  });

  test('has the id of the service, which is that of the oldest', () => {
    const first = instance('a', { health: 'draining' });
    const second = instance('b', { ...later(1), serviceId: 'uid-b' });
    expect(representativeOf([first, second])).toEqual({ ...second, serviceId: 'uid-a' });
  });
});

describe('instances', () => {
  test('stay where they were put, whenever they change', () => {
    const instances = createInstances();
    for (const each of [instance('b', later(1)), instance('c', later(1)), instance('a')]) instances.put(each);
    instances.put(instance('b', { ...later(1), version: 2 }));
    expect(instances.of('shop').map(({ instanceId }) => instanceId)).toEqual(['b', 'c', 'a']);
    expect(instances.find('shop', 'b')?.version).toBe(2);
  });

  test('begin anew behind the others, and only the life that is meant is removed', () => {
    const instances = createInstances();
    for (const each of [instance('a'), instance('b')]) instances.put(each);
    instances.put(instance('a', { id: 'second' }));
    expect(instances.of('shop').map(({ id }) => id)).toEqual(['uid-b', 'second']);
    instances.remove(instance('a'));
    expect(instances.find('shop', 'a')?.id).toBe('second');
    instances.remove(instance('a', { id: 'second' }));
    instances.remove(instance('b'));
    expect([...instances.values()]).toEqual([]);
  });
});
