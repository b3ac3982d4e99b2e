import type { InstanceRecord } from '@rollcall/client/registry-types.ts';
import { describe, expect, test } from 'vitest';
import type { Outline } from '../domain/ports.ts';
import { newsOf, sightingsOf, urlsOf } from './registrations.ts';

function instance(more: Partial<InstanceRecord> = {}): InstanceRecord {
  return {
    service_name: 'users',
    service_url: 'http://users:4000/',
    service_id: 'one',
    registered_at: '2026-11-27T10:00:00Z',
    last_heartbeat: '2026-11-27T10:00:00Z',
    capabilities: ['rest', 'graphql'],
    healthy: true,
    ...more,
  };
}

const usual = ['http://users:4000/api/graphql', 'http://users:4000/graphql'];
const outline: Outline = {
  service: 'users',
  source: 'registered',
  candidates: usual,
  version: null,
  goneAt: null,
  isLeftOut: false,
};
const never = () => false;

describe('a sighting', () => {
  test('is of services with GraphQL, at the usual paths', () => {
    const instances = [instance(), instance({ service_name: 'mail', capabilities: ['rest'] })];
    expect(sightingsOf(instances)).toEqual([
      {
        service: 'users',
        places: [{ isHealthy: true, candidates: usual, version: null }],
        instances: '@2026-11-27T10:00:00Z',
      },
    ]);
  });

  test('is of the path that is registered', () => {
    const [sighting] = sightingsOf([instance({ graphql_path: '/graph', version: '2' })]);
    expect(sighting?.places).toEqual([{ isHealthy: true, candidates: ['http://users:4000/graph'], version: '2' }]);
  });

  test('has the healthy instances first', () => {
    const instances = [
      instance({ instance_id: 'a', healthy: false, version: 'a' }),
      instance({ instance_id: 'c', version: 'c' }),
      instance({ instance_id: 'b', version: 'b' }),
    ];
    expect(sightingsOf(instances)[0]?.places.map(({ version }) => version)).toEqual(['b', 'c', 'a']);
  });

  test('is not of what has no URL', () => {
    expect(sightingsOf([instance({ service_url: 'nowhere' })])).toEqual([]);
  });
});

describe('news are', () => {
  const sightings = sightingsOf([instance()]);

  test('what is not known yet', () => {
    expect(newsOf(sightings, [], never)).toEqual([
      { kind: 'registered', service: 'users', candidates: usual, version: null },
    ]);
  });

  test('another place, version, or that it is back', () => {
    for (const change of [{ candidates: ['http://old/graphql'] }, { version: '0' }, { goneAt: new Date(0) }])
      expect(newsOf(sightings, [{ ...outline, ...change }], never)).toHaveLength(1);
  });

  test('not what is known, what somebody told of, or took out', () => {
    for (const change of [{}, { source: 'introspected' as const, candidates: [] }, { isLeftOut: true, version: '0' }])
      expect(newsOf(sightings, [{ ...outline, ...change }], never)).toEqual([]);
  });

  test('not that there is another instance besides', () => {
    const two = sightingsOf([instance({ instance_id: 'b' }), instance({ instance_id: 'a', service_url: 'http://a/' })]);
    expect(newsOf(two, [outline], never)).toEqual([]);
  });

  test('that one has been absent for long, once', () => {
    expect(newsOf([], [outline], never)).toEqual([]);
    expect(newsOf([], [outline], () => true)).toEqual([{ kind: 'gone', service: 'users' }]);
    expect(newsOf([], [{ ...outline, goneAt: new Date(0) }], () => true)).toEqual([]);
    expect(newsOf([], [{ ...outline, source: 'introspected' }], () => true)).toEqual([]);
  });
});

function at(host: string, more: Partial<InstanceRecord> = {}): InstanceRecord {
  return instance({ instance_id: host, service_url: `http://${host}`, ...more });
}

function urls(url: string, ...instances: readonly InstanceRecord[]): readonly string[] {
  return urlsOf(sightingsOf(instances)[0], url);
}

describe('calls go', () => {
  test('to the same path of every healthy instance', () => {
    const instances = [at('a'), at('b'), at('c', { healthy: false })];
    expect(urls('http://a/graphql', ...instances)).toEqual(['http://a/graphql', 'http://b/graphql']);
    expect(urls('http://c/api/graphql', ...instances)).toEqual(['http://a/api/graphql', 'http://b/api/graphql']);
  });

  test('to those that are not healthy where there are no others', () => {
    expect(urls('http://a/graphql', at('a', { healthy: false }))).toEqual(['http://a/graphql']);
  });

  test('where the schema was found, unless that is registered', () => {
    expect(urls('http://told/graphql', at('a'))).toEqual(['http://told/graphql']);
    expect(urls('http://told/graphql')).toEqual(['http://told/graphql']);
  });
});
