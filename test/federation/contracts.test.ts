import { expect, test } from 'vitest';
import { codeOf, startFederation } from './federation-service.ts';
import { graphqlClient, listen } from './graphql-clients.ts';
import { LIVE_SDL, startLiveSubgraph } from './live-subgraph.ts';
import { reviews, users } from './shop.ts';
import { startSubgraph } from './subgraph-server.ts';

const WAIT = { timeout: 30_000 };
const TAGGED = users.sdl
  .replace('"@external"', '"@external", "@tag"')
  .replace('users: [User!]!', 'users: [User!]! @tag(name: "public")')
  .replace('name: String', 'name: String @tag(name: "public")');

test('a contract shows a part of the graph at an endpoint of its own, and follows the graph', async () => {
  const contracts = { shown: { include: ['public'] }, none: { include: ['nobody'] } };
  const { call, query } = await startFederation({ ROLLCALL_CONTRACTS: JSON.stringify(contracts) });
  const ofUsers = await startSubgraph({ ...users, sdl: TAGGED });
  const ofReviews = await startSubgraph({
    ...reviews,
    sdl: reviews.sdl
      .replace('"@external"', '"@external", "@tag"')
      .replace('[String!]!', '[String!]! @tag(name: "public")'),
  });
  await call('POST', '/schemas/introspect', { body: { serviceUrl: ofUsers.url, name: 'users' } });
  const ask = async (path: string, text: string) => (await call('POST', path, { body: { query: text } })).body;
  expect(await ask('/graphql/shown', '{ users { name } }')).toEqual({
    data: { users: [{ name: 'Anna' }, { name: 'Ben' }] },
  });
  expect(await ask('/graphql/shown', '{ users { id } }')).toMatchObject({
    errors: [{ message: expect.stringContaining('"id"') }],
  });
  expect(await query('{ users { id } }')).toMatchObject({ data: { users: [{ id: '1' }, { id: '2' }] } });
  await call('POST', '/schemas/introspect', { body: { serviceUrl: ofReviews.url, name: 'reviews' } });
  // The key that leads to the other service is not shown, and used all the same.
  expect(await ask('/graphql/shown', '{ users { reviews } }')).toEqual({
    data: { users: [{ reviews: ['review of 1'] }, { reviews: ['review of 2'] }] },
  });
  expect(await ask('/graphql/shown', '{ __type(name: "User") { fields { name } } }')).toEqual({
    data: { __type: { fields: [{ name: 'reviews' }, { name: 'name' }] } },
  });
  const byGet = await call('GET', `/graphql/shown?query=${encodeURIComponent('{ users { name } }')}`, {
    headers: { 'graphql-require-preflight': '1' },
  });
  expect(byGet.body).toHaveProperty('data');
  expect(codeOf(await call('POST', '/graphql/none', { body: { query: '{ __typename }' } }))).toBe('NO_GRAPH');
  expect((await call('POST', '/graphql/other', { body: { query: '{ __typename }' } })).body).toMatchObject({
    error: { code: 'NOT_FOUND', message: 'No part of the graph has this name' },
  });
  expect(codeOf(await call('POST', '/graphql/constructor', { body: { query: '{ __typename }' } }))).toBe('NOT_FOUND');
});

test.each(['WebSocket', 'events'] as const)('subscriptions are those of the contract, by %s', async (transport) => {
  const contracts = { shown: { include: ['public'] } };
  const { call, service } = await startFederation({ ROLLCALL_CONTRACTS: JSON.stringify(contracts) });
  const live = await startLiveSubgraph('WebSocket');
  live.claims(
    LIVE_SDL.replace('"@key"', '"@key", "@tag"')
      .replace('User!', 'User! @tag(name: "public")')
      .replace('name: String!', 'name: String! @tag(name: "public")')
      .replace('size: Int', 'size: Int @tag(name: "public")'),
  );
  await call('POST', '/schemas/introspect', { body: { serviceUrl: live.url, name: 'live' } });
  const client = graphqlClient(transport, { url: service.url, path: '/api/graphql/shown' });
  const heard = listen(client, 'subscription { joined { name } }');
  await expect.poll(() => live.listeners(), WAIT).toBe(1);
  live.joins({ id: '1', name: 'Ada' });
  await expect.poll(() => heard.answers, WAIT).toEqual([{ data: { joined: { name: 'Ada' } } }]);
  const hidden = listen(client, 'subscription { joined { id } }');
  await expect.poll(() => hidden.ended, WAIT).toBeDefined();
  expect(JSON.stringify([hidden.answers, hidden.ended])).toContain('INVALID_REQUEST');
  expect(live.listeners()).toBe(1);
});

test.each(['[]', 'nonsense', '{"Name": {}}', '{"a": {"includes": []}}', '{"a": {"include": "x"}}'])(
  'contracts that are %s are refused at the start',
  async (setting) => {
    await expect(startFederation({ ROLLCALL_CONTRACTS: setting })).rejects.toThrow('ROLLCALL_CONTRACTS');
  },
);
