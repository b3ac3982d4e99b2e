import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import { array, assert, asyncProperty, constantFrom, record } from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createLookupLimiter } from '../../common/overload.ts';
import { createHeartbeats } from './heartbeats.ts';
import { createInstances } from './instances.ts';
import {
  ChangedMeanwhileError,
  type HeartbeatWrite,
  type Registration,
  type RegistrationLife,
  type RegistrationRequest,
  type RegistrationStore,
} from './registration.ts';
import {
  livingInstances,
  lookUpService,
  type RegistrationsDeps,
  recordHeartbeat,
  registerService,
  reportService,
  unregisterService,
} from './registrations.ts';

const TTL_SECONDS = 60;
const AWAY = new Error('the store is away');
const shop: RegistrationRequest = { serviceName: 'shop', url: 'http://a', capabilities: ['rest'], owner: undefined };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A store in memory, with a local copy that does not see what others write. */
function memoryStore() {
  const stored = createInstances();
  const local = createInstances();
  const records = new Map<string, HeartbeatWrite>();
  const intrusions = new Map<keyof RegistrationStore, () => void>();
  const calls: (keyof RegistrationStore)[] = [];
  let away = false;
  let version = 0;

  /** Every method but `find` begins so: others may be faster, the store may be unavailable. */
  async function begin(method: keyof RegistrationStore): Promise<void> {
    calls.push(method);
    await Promise.resolve();
    const intrude = intrusions.get(method);
    intrusions.delete(method);
    intrude?.();
    if (away) throw AWAY;
  }

  function write(registration: Registration): Registration {
    version += 1;
    const written = { ...registration, version };
    stored.put(written);
    return written;
  }

  function make(request: RegistrationRequest, ttlSeconds: number | undefined, serviceId?: string): Registration {
    const id = `life-${version + 1}`;
    return {
      ...request,
      id,
      serviceId: serviceId ?? id,
      health: undefined,
      source: 'API',
      ttlSeconds,
      createdAt: new Date(),
      registeredAt: new Date(),
      phase: 'Registered',
      currentVersion: undefined,
      version: 0,
    };
  }

  function present({ serviceName, instanceId, id }: RegistrationLife): Registration {
    const registration = stored.find(serviceName, instanceId);
    if (registration?.id !== id) throw new ChangedMeanwhileError();
    return registration;
  }

  const store: RegistrationStore = {
    find: ({ serviceName, instanceId }) => local.find(serviceName, instanceId),
    instancesOf: (serviceName) => local.of(serviceName),
    countOf: (owner) => [...local.values()].filter((registration) => registration.owner === owner).length,
    async fetch({ serviceName, instanceId }) {
      await begin('fetch');
      const found = stored.find(serviceName, instanceId);
      const known = local.find(serviceName, instanceId);
      if (found !== undefined) local.put(found);
      else if (known !== undefined) local.remove(known);
      return found;
    },
    async fetchInstances(serviceName) {
      await begin('fetchInstances');
      for (const found of stored.of(serviceName)) local.put(found);
      return local.of(serviceName);
    },
    reportComposition: async () => undefined,
    async create(registration) {
      await begin('create');
      const { ttlSeconds, serviceId, ...request } = registration;
      if (stored.find(request.serviceName, request.instanceId) !== undefined) throw new ChangedMeanwhileError();
      const created = write(make(request, ttlSeconds, serviceId));
      records.set(created.id, { at: new Date(), ageMs: 0 });
      local.put(created);
      return created;
    },
    instancesSince: async ({ serviceName }) => stored.of(serviceName),
    async adopt(registration, serviceId) {
      await begin('adopt');
      const adopted = write({ ...present(registration), serviceId });
      local.put(adopted);
      return adopted;
    },
    async update(registration, { url, capabilities, owner }) {
      await begin('update');
      const updated = write({ ...present(registration), url, capabilities, owner });
      local.put(updated);
      return updated;
    },
    async renew({ id }, heartbeat) {
      await begin('renew');
      if (!records.has(id)) return false;
      records.set(id, heartbeat);
      return true;
    },
    async startHeartbeats(registration, heartbeat) {
      await begin('startHeartbeats');
      records.set(registration.id, heartbeat);
    },
    async remove(registration) {
      await begin('remove');
      local.remove(registration);
      if (stored.find(registration.serviceName, registration.instanceId) === undefined) return false;
      stored.remove(present(registration));
      records.delete(registration.id);
      return true;
    },
    async report(registration) {
      await begin('report');
      present(registration);
    },
  };

  /** As another replica, a user or the operator does it: the local copy hears nothing of it. */
  const others = {
    register(request: RegistrationRequest, fields: Partial<Registration> = {}): Registration {
      const made = write({ ...make(request, TTL_SECONDS), ...fields });
      if (made.ttlSeconds !== undefined && made.source === 'API') records.set(made.id, { at: new Date(), ageMs: 0 });
      return made;
    },
    expire(serviceName: string, instanceId?: string): void {
      const registration = stored.find(serviceName, instanceId);
      if (registration === undefined) return;
      records.delete(registration.id);
      write({ ...registration, phase: 'Expired' });
    },
    loseRecord: (id: string) => void records.delete(id),
    remove(serviceName: string, instanceId?: string): void {
      const registration = stored.find(serviceName, instanceId);
      if (registration !== undefined) stored.remove(registration);
    },
  };
  return {
    store,
    others,
    stored,
    records,
    calls,
    /** The local copy catches up, as by the watch. */
    sync: () => {
      for (const registration of local.values()) local.remove(registration);
      for (const registration of stored.values()) local.put(registration);
    },
    /** Somebody is faster than the next call of this method. */
    before: (method: keyof RegistrationStore, intrude: () => void) => void intrusions.set(method, intrude),
    goAway: () => {
      away = true;
    },
  };
}

function setUp() {
  const memory = memoryStore();
  const clock = { now: () => new Date(), monotonicMs: () => performance.now() };
  const heartbeats = createHeartbeats({
    clock,
    renew: (life, heartbeat) => memory.store.renew(life, heartbeat),
    onBeat: () => undefined,
    onFlushFailure: () => undefined,
  });
  const deps: RegistrationsDeps = {
    store: memory.store,
    heartbeats,
    oneByOne: createConcurrencyLimiter({ mostPerKey: 1 }),
    misses: createLookupLimiter(1),
    mayConnect: addressRules.cluster,
    clock,
    ttlSeconds: TTL_SECONDS,
    registrationsPerSubject: 2,
  };
  const beat = async (serviceName = 'shop', subject?: string) => recordHeartbeat(deps, { serviceName }, subject);
  return { ...memory, deps, heartbeats, beat };
}

const code = (expected: string) => expect.objectContaining({ code: expected });

describe('registering', () => {
  test('a new name makes a registration with the TTL and its first heartbeat', async () => {
    const { deps, stored, records } = setUp();
    const registered = await registerService(deps, shop);
    expect(registered).toMatchObject({ ...shop, ttlSeconds: TTL_SECONDS, phase: 'Registered', source: 'API' });
    expect(stored.find('shop', undefined)).toEqual(registered);
    expect(records.has(registered.id)).toBe(true);
    expect(deps.heartbeats.lastBeatAt(registered.id)).toEqual(new Date());
  });

  test('the same again renews the heartbeat and changes nothing, in whatever order the capabilities come', async () => {
    const { deps, records, calls } = setUp();
    const request: RegistrationRequest = { ...shop, capabilities: ['rest', 'grpc'] };
    const first = await registerService(deps, request);
    calls.length = 0;
    vi.advanceTimersByTime(50_000);
    const again = await registerService(deps, { ...request, capabilities: ['grpc', 'rest'] });
    expect(again).toEqual(first);
    expect(calls).toEqual(['renew']);
    expect(records.get(first.id)?.at).toEqual(new Date());
    expect(deps.heartbeats.lastBeatAt(first.id)).toEqual(new Date());
  });

  test.each<[string, Partial<RegistrationRequest>]>([
    ['another URL', { url: 'http://b' }],
    ['more capabilities', { capabilities: ['rest', 'grpc'] }],
    ['fewer capabilities', { capabilities: [] }],
    ['an owner', { owner: 'alice' }],
  ])('a live name with %s changes it and keeps the id', async (_what, change) => {
    const { deps, stored } = setUp();
    const first = await registerService(deps, shop);
    const again = await registerService(deps, { ...shop, ...change });
    expect(again).toMatchObject({ ...shop, ...change, id: first.id });
    expect(stored.find('shop', undefined)).toEqual(again);
  });

  test('a name that is known to another replica only is that registration', async () => {
    const { deps, others } = setUp();
    const theirs = others.register(shop);
    expect((await registerService(deps, { ...shop, url: 'http://b' })).id).toBe(theirs.id);
  });

  test('an expired name begins a new life', async () => {
    const { deps, others, sync, stored, heartbeats } = setUp();
    const first = await registerService(deps, shop);
    others.expire('shop');
    sync();
    const again = await registerService(deps, shop);
    expect(again.id).not.toBe(first.id);
    expect(stored.find('shop', undefined)).toMatchObject({ id: again.id, phase: 'Registered' });
    expect(heartbeats.lastBeatAt(first.id)).toBeUndefined();
  });

  test('an expired name that is removed by others first begins a new life all the same', async () => {
    const { deps, others, sync, before } = setUp();
    const first = others.register(shop, { phase: 'Expired' });
    sync();
    before('remove', () => others.remove('shop'));
    expect((await registerService(deps, shop)).id).not.toBe(first.id);
  });

  test('an expiry that this replica does not know yet begins a new life', async () => {
    const { deps, others, stored } = setUp();
    const first = await registerService(deps, shop);
    others.expire('shop');
    const again = await registerService(deps, shop);
    expect(again.id).not.toBe(first.id);
    expect(stored.find('shop', undefined)?.phase).toBe('Registered');
  });

  test('a live registration without its heartbeat record gets a new one before it is acknowledged', async () => {
    const { deps, others, records, calls } = setUp();
    const first = await registerService(deps, shop);
    others.loseRecord(first.id);
    calls.length = 0;
    expect((await registerService(deps, shop)).id).toBe(first.id);
    expect(records.has(first.id)).toBe(true);
    // The update last: it makes an expiry fail that was decided before.
    expect(calls).toEqual(['renew', 'startHeartbeats', 'update']);
  });

  test('a name that another replica takes first is then theirs, updated', async () => {
    const { deps, others, before, stored } = setUp();
    let theirs: Registration | undefined;
    before('create', () => {
      theirs = others.register({ ...shop, url: 'http://theirs' });
    });
    const registered = await registerService(deps, shop);
    expect(registered.id).toBe(theirs?.id);
    expect(stored.find('shop', undefined)?.url).toBe(shop.url);
  });

  test('a life that ends under an update is begun anew', async () => {
    const { deps, others, before } = setUp();
    const first = await registerService(deps, shop);
    before('update', () => others.remove('shop'));
    const again = await registerService(deps, { ...shop, url: 'http://b' });
    expect(again).toMatchObject({ url: 'http://b', phase: 'Registered' });
    expect(again.id).not.toBe(first.id);
  });

  test('a name that others win again and again is refused as unavailable', async () => {
    const { deps, store, calls } = setUp();
    const contested = { ...deps, store: { ...store, create: () => Promise.reject(new ChangedMeanwhileError()) } };
    await expect(registerService(contested, shop)).rejects.toEqual(code('CONTENTION'));
    expect(calls.filter((call) => call === 'fetch').length).toBeLessThan(20);
  });

  test('many at once in one process make one registration', async () => {
    const { deps, calls } = setUp();
    const all = await Promise.all(Array.from({ length: 10 }, () => registerService(deps, shop)));
    expect(new Set(all.map(({ id }) => id)).size).toBe(1);
    expect(calls.filter((call) => call === 'create')).toHaveLength(1);
  });

  test.each([
    ['a name with a colon', { serviceName: 'a:b' }, 'INVALID_SERVICE_NAME'],
    ['an empty name', { serviceName: '' }, 'INVALID_SERVICE_NAME'],
    ['a relative URL', { url: '/shop' }, 'INVALID_SERVICE_URL'],
    ['a loopback address', { url: 'http://127.0.0.1' }, 'INVALID_SERVICE_URL'],
  ])('%s is refused without asking the store', async (_what, fields, refusal) => {
    const { deps, calls } = setUp();
    await expect(registerService(deps, { ...shop, ...fields })).rejects.toEqual(code(refusal));
    expect(calls).toEqual([]);
  });

  test.each(['Manifest', 'KubernetesService'] as const)('a name declared as %s is refused', async (source) => {
    const { deps, others, stored } = setUp();
    const declared = others.register(shop, { source });
    await expect(registerService(deps, { ...shop, url: 'http://b' })).rejects.toEqual(code('MANAGED_ELSEWHERE'));
    expect(stored.find('shop', undefined)).toEqual(declared);
  });

  test('the name of another subject is refused, even when it has expired; its own is not', async () => {
    const { deps, others } = setUp();
    others.register({ ...shop, owner: 'alice' }, { phase: 'Expired' });
    await expect(registerService(deps, { ...shop, owner: 'bob' })).rejects.toEqual(code('NAME_OWNED_BY_ANOTHER'));
    expect(await registerService(deps, { ...shop, owner: 'alice' })).toMatchObject({ owner: 'alice' });
  });

  test('nothing is acknowledged while the store is unavailable', async () => {
    const { deps, goAway } = setUp();
    const { id } = await registerService(deps, shop);
    const registeredAt = new Date();
    goAway();
    vi.advanceTimersByTime(20_000);
    await expect(registerService(deps, shop)).rejects.toBe(AWAY);
    await expect(registerService(deps, { ...shop, serviceName: 'new' })).rejects.toBe(AWAY);
    expect(deps.heartbeats.lastBeatAt(id)).toEqual(registeredAt);
  });
});

describe('removing', () => {
  test('a registration goes, with what is known of its heartbeats; the second time it is not found', async () => {
    const { deps, stored, heartbeats, beat } = setUp();
    const { id } = await registerService(deps, shop);
    await unregisterService(deps, { serviceName: 'shop' }, undefined);
    expect(stored.find('shop', undefined) !== undefined).toBe(false);
    expect(heartbeats.lastBeatAt(id)).toBeUndefined();
    await expect(unregisterService(deps, { serviceName: 'shop' }, undefined)).rejects.toEqual(
      code('SERVICE_NOT_FOUND'),
    );
    await expect(beat()).rejects.toEqual(code('SERVICE_NOT_FOUND'));
  });

  test('a name that is known to another replica only goes, too', async () => {
    const { deps, others, stored } = setUp();
    others.register(shop);
    await unregisterService(deps, { serviceName: 'shop' }, undefined);
    expect(stored.find('shop', undefined) !== undefined).toBe(false);
  });

  test('an expired one, and one that others removed meanwhile, are not found', async () => {
    const { deps, others, sync, before } = setUp();
    others.register(shop, { phase: 'Expired' });
    await expect(unregisterService(deps, { serviceName: 'shop' }, undefined)).rejects.toEqual(
      code('SERVICE_NOT_FOUND'),
    );
    others.register({ ...shop, serviceName: 'raced' });
    sync();
    before('remove', () => others.remove('raced'));
    await expect(unregisterService(deps, { serviceName: 'raced' }, undefined)).rejects.toEqual(
      code('SERVICE_NOT_FOUND'),
    );
  });

  test('where another life has begun meanwhile, that one goes', async () => {
    const { deps, others, stored, before } = setUp();
    await registerService(deps, shop);
    before('remove', () => others.register(shop));
    await unregisterService(deps, { serviceName: 'shop' }, undefined);
    expect(stored.find('shop', undefined) !== undefined).toBe(false);
  });

  test('what is declared elsewhere, or is of another subject, stays', async () => {
    const { deps, others, stored } = setUp();
    others.register(shop, { source: 'Manifest' });
    await expect(unregisterService(deps, { serviceName: 'shop' }, undefined)).rejects.toEqual(
      code('MANAGED_ELSEWHERE'),
    );
    others.register({ ...shop, serviceName: 'hers', owner: 'alice' });
    await expect(unregisterService(deps, { serviceName: 'hers' }, 'bob')).rejects.toEqual(
      code('NAME_OWNED_BY_ANOTHER'),
    );
    expect(Array.from(stored.values(), ({ serviceName }) => serviceName)).toEqual(['shop', 'hers']);
  });

  test('while the store is unavailable nothing is acknowledged, and the registration is still found', async () => {
    const { deps, goAway } = setUp();
    const registered = await registerService(deps, shop);
    goAway();
    await expect(unregisterService(deps, { serviceName: 'shop' }, undefined)).rejects.toBe(AWAY);
    expect(await lookUpService(deps, 'shop')).toEqual(registered);
  });
});

describe('heartbeats', () => {
  test('are seen as a live registration and answered with its own TTL', async () => {
    const { deps, others, sync, beat } = setUp();
    await registerService(deps, shop);
    expect(await beat()).toBe(TTL_SECONDS);
    others.register({ ...shop, serviceName: 'brisk' }, { ttlSeconds: 10 });
    sync();
    expect(await beat('brisk')).toBe(10);
  });

  test('are seen as what only another replica knows', async () => {
    const { others, records, beat } = setUp();
    const { id } = others.register(shop);
    vi.advanceTimersByTime(30_000);
    expect(await beat()).toBe(TTL_SECONDS);
    expect(records.get(id)?.at).toEqual(new Date());
  });

  test('are refused for what is unknown, illegal, expired, or of another subject', async () => {
    const { others, sync, beat, calls } = setUp();
    await expect(beat('nobody')).rejects.toEqual(code('SERVICE_NOT_FOUND'));
    calls.length = 0;
    await expect(beat('a:b')).rejects.toEqual(code('SERVICE_NOT_FOUND'));
    expect(calls).toEqual([]);
    others.register(shop, { phase: 'Expired' });
    others.register({ ...shop, serviceName: 'hers', owner: 'alice' });
    sync();
    await expect(beat('shop')).rejects.toEqual(code('SERVICE_NOT_FOUND'));
    await expect(beat('hers', 'bob')).rejects.toEqual(code('NAME_OWNED_BY_ANOTHER'));
    expect(await beat('hers', 'alice')).toBe(TTL_SECONDS);
  });

  test('of what needs none cost nothing', async () => {
    const { others, sync, beat, calls } = setUp();
    others.register(shop, { source: 'Manifest', ttlSeconds: undefined });
    sync();
    expect(await beat()).toBe(TTL_SECONDS);
    expect(calls).toEqual([]);
  });

  test('are refused when the record is gone: the registration is being expired', async () => {
    const { deps, others, beat } = setUp();
    const { id } = await registerService(deps, shop);
    others.loseRecord(id);
    vi.advanceTimersByTime(30_000);
    await expect(beat()).rejects.toEqual(code('SERVICE_NOT_FOUND'));
  });

  test('count for the next life where that has begun on another replica', async () => {
    const { deps, others, records, beat } = setUp();
    const first = await registerService(deps, shop);
    others.loseRecord(first.id);
    const second = others.register(shop);
    vi.advanceTimersByTime(30_000);
    expect(await beat()).toBe(TTL_SECONDS);
    expect(records.get(second.id)?.at).toEqual(new Date());
    expect(records.has(first.id)).toBe(false);
  });

  test('begin the record of a manifest with a TTL, unless it expires first', async () => {
    const { others, sync, records, beat, before } = setUp();
    const manifest = others.register(shop, { source: 'Manifest' });
    others.register({ ...shop, serviceName: 'late' }, { source: 'Manifest' });
    sync();
    expect(await beat()).toBe(TTL_SECONDS);
    expect(records.has(manifest.id)).toBe(true);
    before('update', () => others.expire('late'));
    await expect(beat('late')).rejects.toEqual(code('SERVICE_NOT_FOUND'));
  });

  test('that are due are not acknowledged while the store is unavailable; those that may be absorbed are', async () => {
    const { deps, goAway, beat } = setUp();
    await registerService(deps, shop);
    goAway();
    vi.advanceTimersByTime(14_000);
    expect(await beat()).toBe(TTL_SECONDS);
    vi.advanceTimersByTime(30_000);
    await expect(beat()).rejects.toBe(AWAY);
    await expect(beat('nobody')).rejects.toBe(AWAY);
  });

  test('of unknown names do not pile up', async () => {
    const { beat } = setUp();
    const answers = await Promise.allSettled([beat('one'), beat('two')]);
    expect(answers).toEqual([
      { status: 'rejected', reason: code('SERVICE_NOT_FOUND') },
      { status: 'rejected', reason: code('OVERLOADED') },
    ]);
  });
});

describe('reports', () => {
  const report = { kind: 'health', word: 'healthy', at: new Date(0), details: {} } as const;
  const input = { serviceName: 'shop', subject: undefined, report };

  test('are kept for live registrations alone', async () => {
    const { deps, calls, before, others } = setUp();
    await expect(reportService(deps, input)).rejects.toEqual(code('SERVICE_NOT_FOUND'));
    await registerService(deps, shop);
    await reportService(deps, input);
    expect(calls.at(-1)).toBe('report');
    before('report', () => others.remove('shop'));
    await expect(reportService(deps, input)).rejects.toEqual(code('SERVICE_NOT_FOUND'));
  });

  test('of another subject are refused', async () => {
    const { deps } = setUp();
    await registerService(deps, { ...shop, owner: 'alice' });
    await expect(reportService(deps, { ...input, subject: 'bob' })).rejects.toEqual(code('NAME_OWNED_BY_ANOTHER'));
  });
});

function named(serviceName: string, owner: string | undefined): RegistrationRequest {
  return { ...shop, serviceName, owner };
}

describe('the share of a subject', () => {
  test('bounds what one subject may register, and no other', async () => {
    const { deps } = setUp();
    await registerService(deps, named('a', 'me'));
    await registerService(deps, named('b', 'me'));
    await expect(registerService(deps, named('c', 'me'))).rejects.toEqual(code('TOO_MANY_REGISTRATIONS'));
    await registerService(deps, named('c', 'you'));
    // What it has, it may change; and once one is gone, there is room for another.
    await registerService(deps, { ...named('a', 'me'), url: 'http://elsewhere:1' });
    await unregisterService(deps, { serviceName: 'a' }, 'me');
    await registerService(deps, named('d', 'me'));
  });

  test('counts a name without an owner that it takes over, and an expired one as its own', async () => {
    const { deps, others, sync } = setUp();
    await registerService(deps, named('free', undefined));
    await registerService(deps, named('a', 'me'));
    await registerService(deps, named('b', 'me'));
    await expect(registerService(deps, named('free', 'me'))).rejects.toEqual(code('TOO_MANY_REGISTRATIONS'));
    await expect(registerService(deps, named('other', 'me'))).rejects.toEqual(code('TOO_MANY_REGISTRATIONS'));
    others.expire('a');
    sync();
    await registerService(deps, named('a', 'me'));
  });

  test('is none where callers are unknown', async () => {
    const { deps } = setUp();
    for (const name of ['a', 'b', 'c', 'd']) {
      expect(await registerService(deps, named(name, undefined))).toMatchObject({ serviceName: name });
    }
  });
});

const instance = (instanceId: string | undefined) => ({ ...shop, instanceId, url: `http://${instanceId ?? 'none'}` });

describe('instances', () => {
  const IDS = [undefined, 'a', 'b'];

  test('whatever happens to three of them, the name lives with its id while one does, and not longer', async () => {
    const step = record({
      act: constantFrom('register', 'heartbeat', 'expire', 'unregister'),
      instanceId: constantFrom(...IDS),
    });
    await assert(
      asyncProperty(array(step, { maxLength: 30 }), async (steps) => {
        const { deps, others, sync } = setUp();
        const living = new Set<string | undefined>();
        const ended = new Set<string>();
        let id: string | undefined;
        for (const { act, instanceId } of steps) {
          const key = { serviceName: 'shop', instanceId };
          const isAccepted = act === 'register' || act === 'expire' || living.has(instanceId);
          const done = async (): Promise<unknown> => {
            if (act === 'register') return registerService(deps, instance(instanceId));
            if (act === 'heartbeat') return recordHeartbeat(deps, key, undefined);
            if (act === 'unregister') return unregisterService(deps, key, undefined);
            others.expire('shop', instanceId);
            return sync();
          };
          const outcome = await done().then(
            () => 'accepted',
            (error: { code: string }) => error.code,
          );
          expect(outcome).toBe(isAccepted ? 'accepted' : 'SERVICE_NOT_FOUND');
          if (act === 'register') living.add(instanceId);
          else if (act !== 'heartbeat') living.delete(instanceId);
          const found = await lookUpService(deps, 'shop').catch(() => undefined);
          expect(found !== undefined).toBe(living.size > 0);
          if (found === undefined && id !== undefined) ended.add(id);
          id = found === undefined ? undefined : (id ?? found.serviceId);
          expect(found?.serviceId).toBe(id);
          expect(ended).not.toContain(id);
          const listed = livingInstances(deps.store, 'shop').map((each) => each.instanceId);
          expect(new Set(listed)).toEqual(living);
          expect(listed).toHaveLength(living.size);
        }
      }),
    );
  });

  test('of two first ones at different replicas, the later takes the id of the service from the other', async () => {
    const { deps, others, before, stored } = setUp();
    let theirs: Registration | undefined;
    before('create', () => {
      theirs = others.register(instance('a'));
    });
    const ours = await registerService(deps, instance('b'));
    expect(ours.serviceId).toBe(theirs?.id);
    expect(stored.find('shop', 'b')).toMatchObject({ id: ours.id, serviceId: theirs?.id });
  });

  test('of those stored before it the first decides, though another one has an earlier time', async () => {
    const { deps, others, before } = setUp();
    let first: Registration | undefined;
    before('create', () => {
      vi.setSystemTime(2000);
      first = others.register(instance('a'));
      vi.setSystemTime(1000);
      others.register(instance('b'));
    });
    expect((await registerService(deps, instance('c'))).serviceId).toBe(first?.id);
  });

  test('of two owners that register a name at once one gets it, and nothing of the other is left', async () => {
    const { deps, others, before, stored, records } = setUp();
    before('create', () => others.register({ ...instance('a'), owner: 'alice' }));
    const late = registerService(deps, { ...instance('b'), owner: 'bob' });
    await expect(late).rejects.toEqual(code('NAME_OWNED_BY_ANOTHER'));
    expect(stored.of('shop').map(({ owner }) => owner)).toEqual(['alice']);
    expect(records.size).toBe(1);
  });

  test('what others made behind the back of this replica is seen before an instance stays', async () => {
    const { deps: usual, others, before, stored } = setUp();
    const deps = { ...usual, registrationsPerSubject: 9 };
    const gone = await registerService(deps, { ...instance('a'), owner: 'alice' });
    let next: Registration | undefined;
    before('create', () => {
      others.remove('shop', 'a');
      next = others.register({ ...instance('d'), owner: 'alice' });
    });
    const ours = await registerService(deps, { ...instance('b'), owner: 'alice' });
    expect(ours.serviceId).toBe(next?.id);
    before('create', () => {
      for (const id of ['b', 'd']) others.remove('shop', id);
      others.register({ ...instance('e'), owner: 'bob' });
    });
    const late = registerService(deps, { ...instance('c'), owner: 'alice' });
    await expect(late).rejects.toEqual(code('NAME_OWNED_BY_ANOTHER'));
    expect(stored.of('shop').map(({ owner }) => owner)).toEqual(['bob']);
    expect(gone.serviceId).toBe(gone.id);
  });

  test('what could not be found out makes no instance', async () => {
    const { deps, stored, records } = setUp();
    const lost = { ...deps, store: { ...deps.store, instancesSince: () => Promise.reject(AWAY) } };
    await expect(registerService(lost, instance('a'))).rejects.toBe(AWAY);
    expect(stored.of('shop')).toEqual([]);
    expect(records.size).toBe(0);
  });

  test('an instance that has another id than its service gets that when it registers anew', async () => {
    const { deps, others, sync } = setUp();
    vi.setSystemTime(0);
    const first = others.register(instance('a'));
    vi.setSystemTime(2000);
    others.register(instance('b'));
    sync();
    expect((await registerService(deps, instance('b'))).serviceId).toBe(first.id);
  });

  test('so do two that were created in the same second, whichever registers anew', async () => {
    const { deps, others, sync } = setUp();
    others.register(instance('a'));
    others.register(instance('b'));
    sync();
    const ids = [];
    for (const id of ['b', 'a', 'b']) ids.push((await registerService(deps, instance(id))).serviceId);
    expect(new Set(ids.slice(1)).size).toBe(1);
  });

  test('a report without an id is of the unnamed instance, though only another one is known here', async () => {
    const { deps, others, sync, calls } = setUp();
    others.register(instance('a'));
    sync();
    others.register(instance(undefined));
    const report = { kind: 'health', word: 'draining', at: new Date(), details: {} } as const;
    calls.length = 0;
    await reportService(deps, { serviceName: 'shop', subject: undefined, report });
    expect(calls).toEqual(['fetch', 'report']);
  });

  test('no other owner, and no other source, joins a name', async () => {
    const { deps, others, sync } = setUp();
    await registerService(deps, { ...instance('a'), owner: 'alice' });
    const refused = registerService(deps, { ...instance('b'), owner: 'bob' });
    await expect(refused).rejects.toEqual(code('NAME_OWNED_BY_ANOTHER'));
    others.register({ ...instance(undefined), serviceName: 'declared' }, { source: 'Manifest' });
    sync();
    const beside = registerService(deps, { ...instance('b'), serviceName: 'declared' });
    await expect(beside).rejects.toEqual(code('MANAGED_ELSEWHERE'));
  });

  test.each(['', 'A', '-a', 'a-', 'a.b', 'a'.repeat(64), 'ä'])('%j is no id of one', async (instanceId) => {
    const { deps } = setUp();
    await expect(registerService(deps, instance(instanceId))).rejects.toEqual(code('INVALID_INSTANCE_ID'));
    await expect(unregisterService(deps, { serviceName: 'shop', instanceId }, undefined)).rejects.toEqual(
      code('INVALID_INSTANCE_ID'),
    );
  });
});
