import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { startService } from '@rollcall/local/services.ts';
import { describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { refusalOf } from '../gateway/websocket-client.ts';
import { type Federation, startFederation } from './federation-service.ts';
import { graphqlClient, type Heard, listen, type Transport } from './graphql-clients.ts';
import { LIVE_SDL, type LiveSubgraph, startLiveSubgraph } from './live-subgraph.ts';
import { reviews } from './shop.ts';
import { type SubgraphServer, startSubgraph } from './subgraph-server.ts';

const WAIT = { timeout: 30_000 };
const JOINED = 'subscription { joined { name reviews } }';
const ada = { id: '1', name: 'Ada' };
const ADA = { data: { joined: { name: 'Ada', reviews: ['review of 1'] } } };

interface Team extends Federation {
  readonly live: LiveSubgraph;
  readonly reviews: SubgraphServer;
}

async function startTeam(transport: Parameters<typeof startLiveSubgraph>[0] = 'WebSocket'): Promise<Team> {
  const federation = await startFederation();
  const live = await startLiveSubgraph(transport);
  const others = await startSubgraph(reviews);
  for (const [name, serviceUrl] of [
    ['live', live.url],
    ['reviews', others.url],
  ]) {
    const { body } = await federation.call('POST', '/schemas/introspect', { body: { name, serviceUrl } });
    expect(body).toMatchObject({ composition: { errors: [] } });
  }
  return { ...federation, live, reviews: others };
}

const clientOf = (transport: Transport, { service: { url } }: Federation, token?: string) =>
  graphqlClient(transport, { url, token });

const PROTOCOL = 'graphql-transport-ws';
const urlOf = ({ service: { url } }: Federation) => `${url.replace('http', 'ws')}/api/graphql`;

const until = (live: LiveSubgraph, count: number) => vi.waitFor(() => expect(live.listeners()).toBe(count), WAIT);
const hears = (heard: Heard, answers: readonly unknown[]) =>
  vi.waitFor(() => expect(heard.answers).toEqual(answers), WAIT);
const ends = (heard: Heard, how: unknown) => vi.waitFor(() => expect(heard.ended).toEqual(how), WAIT);

describe.each(['WebSocket', 'events'] as const)('to clients by %s', (transport) => {
  test.each(['WebSocket', 'events'] as const)('a subscription of a service by %s', async (upstream) => {
    const team = await startTeam(upstream);
    const heard = listen(clientOf(transport, team), JOINED);
    await until(team.live, 1);
    team.live.joins(ada);
    team.live.joins({ id: '2', name: 'Ben' });
    await hears(heard, [ADA, { data: { joined: { name: 'Ben', reviews: ['review of 2'] } } }]);
    team.live.joins({ id: '3', name: null });
    await vi.waitFor(
      () => expect(heard.answers[2]).toMatchObject({ data: null, errors: [{ path: ['joined', 'name'] }] }),
      WAIT,
    );
    team.live.joins(ada);
    await vi.waitFor(() => expect(heard.answers[3]).toEqual(ADA), WAIT);
    team.live.closes();
    await ends(heard, 'complete');
  });

  test('ends at the service once its caller leaves', async () => {
    const team = await startTeam();
    const heard = listen(clientOf(transport, team), JOINED);
    await until(team.live, 1);
    heard.leave();
    await expect.poll(() => team.live.listeners(), WAIT).toBe(0);
  });

  test('an answer that is larger than what may wait arrives whole, and ends', async () => {
    const team = await startTeam();
    const name = 'x'.repeat(4_000_000);
    team.reviews.misbehave((response) => response.end(JSON.stringify({ data: { _entities: [{ reviews: [name] }] } })));
    const heard = listen(clientOf(transport, team), JOINED);
    await until(team.live, 1);
    team.live.joins(ada);
    team.live.closes();
    await ends(heard, 'complete');
    expect(heard.answers).toEqual([{ data: { joined: { name: 'Ada', reviews: [name] } } }]);
  });

  test('queries and mutations are answered once', async () => {
    const client = clientOf(transport, await startTeam());
    for (const [query, data] of [
      ['{ size }', { size: 3 }],
      ['mutation { grow }', { grow: 4 }],
    ] as const) {
      const heard = listen(client, query);
      await ends(heard, 'complete');
      expect(heard.answers).toEqual([{ data }]);
    }
  });
});

test('what is refused is told, and asks no service', async () => {
  const team = await startTeam();
  const problem = expect.objectContaining({ extensions: { code: 'INVALID_REQUEST' } });
  for (const query of ['{', 'subscription { nothing }', '{ nothing }']) {
    await ends(listen(clientOf('WebSocket', team), query), [problem]);
    const heard = listen(clientOf('events', team), query);
    await ends(heard, 'complete');
    expect(heard.answers).toEqual([{ errors: [problem] }]);
  }
  expect(team.live.asked).toEqual([]);
});

describe('equal subscriptions of one caller', () => {
  test.each(['WebSocket', 'events'] as const)('are one at the service, by %s', async (transport) => {
    const team = await startTeam();
    const anna = await team.tokenOf('a');
    const [first, second, other] = [JOINED, JOINED, 'subscription { joined { id } }'].map((query) =>
      listen(clientOf(transport, team, anna), query),
    );
    await until(team.live, 2);
    team.live.joins(ada);
    for (const heard of [first, second]) await vi.waitFor(() => expect(heard?.answers).toEqual([ADA]), WAIT);
    other?.leave();
    first?.leave();
    await until(team.live, 1);
    team.live.joins(ada);
    await vi.waitFor(() => expect(second?.answers).toEqual([ADA, ADA]), WAIT);
    expect(first?.answers).toEqual([ADA]);
    second?.leave();
    await until(team.live, 0);
  });

  test('are not shared with another caller, nor with who is not known', async () => {
    const team = await startTeam();
    const tokens = [await team.tokenOf('a'), await team.tokenOf('a', { subject: 'ben' }), await team.tokenOf('b')];
    for (const token of [...tokens, undefined, undefined]) listen(clientOf('WebSocket', team, token), JOINED);
    await expect.poll(() => team.live.listeners(), WAIT).toBe(5);
  });
});

describe('another graph', () => {
  test('that has the subscription goes on with it, by what the graph has now', async () => {
    const team = await startTeam();
    const heard = listen(clientOf('WebSocket', team), JOINED);
    await until(team.live, 1);
    team.reviews.become({ sdl: reviews.sdl, resolvers: { User: { reviews: () => ['new'] } } });
    team.live.claims(LIVE_SDL.replace('size: Int', 'size: Int other: Int'));
    expect((await team.call('POST', '/schemas/refresh')).body).toMatchObject({ failed: [] });
    const fields = await team.query('{ __type(name: "Query") { fields { name } } }');
    expect(JSON.stringify(fields)).toContain('"other"');
    team.live.joins(ada);
    await hears(heard, [{ data: { joined: { name: 'Ada', reviews: ['new'] } } }]);
    expect([heard.ended, team.live.asked.length]).toEqual([undefined, 1]);
  });

  test('without the subscription ends it with a code', async () => {
    const team = await startTeam();
    const client = clientOf('WebSocket', team);
    const heard = listen(client, JOINED);
    await until(team.live, 1);
    team.live.claims(LIVE_SDL.replace('joined(team: String): User!', 'left: Int'));
    await team.call('POST', '/schemas/refresh');
    await ends(heard, [expect.objectContaining({ extensions: { code: 'GRAPH_CHANGED' } })]);
    await until(team.live, 0);
    await ends(listen(client, JOINED), [expect.objectContaining({ extensions: { code: 'INVALID_REQUEST' } })]);
  });

  test('that asks the service for something else ends it, to be begun again', async () => {
    const team = await startTeam();
    const client = clientOf('WebSocket', team);
    const heard = listen(client, JOINED);
    await until(team.live, 1);
    team.live.claims(LIVE_SDL.replace('name: String!', ''));
    team.reviews.become({
      sdl: reviews.sdl.replace('reviews:', 'name: String! reviews:'),
      resolvers: { User: { name: () => 'Grace', reviews: () => [] } },
    });
    await team.call('POST', '/schemas/refresh');
    await ends(heard, [expect.objectContaining({ extensions: { code: 'GRAPH_CHANGED' } })]);
    await until(team.live, 0);
    const again = listen(client, JOINED);
    await until(team.live, 1);
    team.live.joins(ada);
    await hears(again, [{ data: { joined: { name: 'Grace', reviews: [] } } }]);
  });
});

test('a service that is killed ends its subscriptions with an error', async () => {
  const federation = await startFederation();
  const sample = await startService(
    { name: 'users', script: 'local/src/sample-users.ts', args: ['users', '0', federation.service.url] },
    { logDirectory: inject('temporaryDirectory'), env: { PATH: process.env['PATH'] } },
  );
  onTestFinished(() => sample.stop());
  const log = await vi.waitFor(async () => {
    const [, url] = /answers at (\S+)/.exec(await readFile(sample.logFile, 'utf8')) ?? [];
    if (url === undefined) throw new Error('It does not listen yet');
    return url;
  }, WAIT);
  const serviceUrl = `${log}/api/graphql`;
  await federation.call('POST', '/schemas/introspect', { body: { name: 'users', serviceUrl } });
  const heard = listen(clientOf('WebSocket', federation), 'subscription { userAdded { name } }');
  const add = () => federation.query('mutation { addUser(id: "u-3", name: "Thandi") { id } }');
  await vi.waitFor(async () => {
    await add();
    expect(heard.answers[0]).toEqual({ data: { userAdded: { name: 'Thandi' } } });
  }, WAIT);
  process.kill(sample.pid, 'SIGKILL');
  const code = { code: 'SUBGRAPH_UNAVAILABLE', service: 'users' };
  await ends(heard, [expect.objectContaining({ extensions: code })]);
});

test('several large answers at once reach a client that reads', async () => {
  const team = await startTeam();
  const size = 'x'.repeat(4_000_000);
  const large = await startSubgraph({
    sdl: 'type Query { large: String }',
    resolvers: { Query: { large: () => size } },
  });
  await team.call('POST', '/schemas/introspect', { body: { name: 'large', serviceUrl: large.url } });
  const client = clientOf('WebSocket', team);
  const all = Array.from({ length: 10 }, () => listen(client, '{ large }'));
  for (const heard of all) await ends(heard, 'complete');
  for (const { answers } of all) expect(answers).toEqual([{ data: { large: size } }]);
});

test('who does not read is cut off, and others go on', async () => {
  const team = await startTeam();
  const token = await team.tokenOf('a');
  const slow = new WebSocket(urlOf(team), PROTOCOL, {
    headers: { authorization: `Bearer ${token}` },
  });
  onTestFinished(() => slow.terminate());
  await once(slow, 'open');
  slow.send('{"type":"connection_init"}');
  await once(slow, 'message');
  slow.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: JOINED } }));
  await until(team.live, 1);
  slow.pause();
  const heard = listen(clientOf('WebSocket', team, await team.tokenOf('a', { subject: 'ben' })), JOINED);
  await until(team.live, 2);
  const name = 'x'.repeat(1_000_000);
  let count = 0;
  // What the system keeps for who does not read differs from machine to machine.
  await vi.waitFor(async () => {
    for (let times = 0; times < 20; times += 1) team.live.joins({ id: '1', name });
    count += 20;
    await vi.waitFor(() => expect(heard.answers).toHaveLength(count), WAIT);
    expect(team.live.listeners()).toBe(1);
  }, WAIT);
  expect(heard.ended).toBeUndefined();
  const closed = once(slow, 'close');
  slow.resume();
  expect((await closed)[0]).toBe(1013);
});

describe('a WebSocket', () => {
  const INIT = { type: 'connection_init' };
  const OPERATION = { id: '1', type: 'subscribe', payload: { query: JOINED } };

  test.each([
    ['what is no JSON', 4400, ['{']],
    ['a message that there is none of', 4400, [INIT, { type: 'start' }]],
    ['an operation without a document', 4400, [INIT, { ...OPERATION, payload: {} }]],
    ['an operation before connection_init', 4401, [OPERATION]],
    ['connection_init twice', 4429, [INIT, INIT]],
    ['an id twice', 4409, [INIT, OPERATION, OPERATION]],
    ['credentials that do not hold', 4403, [{ ...INIT, payload: { Authorization: 'Bearer wrong' } }]],
    ['a message that is too large', 1009, [INIT, { type: 'ping', payload: { text: 'x'.repeat(600_000) } }]],
  ])('ends for %s with %d', async (_, code, messages) => {
    const team = await startTeam();
    const socket = new WebSocket(urlOf(team), PROTOCOL);
    const closed = once(socket, 'close');
    await once(socket, 'open');
    for (const message of messages) {
      const answered = message === INIT && code !== 4429 ? once(socket, 'message') : undefined;
      socket.send(typeof message === 'string' ? message : JSON.stringify(message));
      await answered;
    }
    expect((await closed)[0]).toBe(code);
    await until(team.live, 0);
  });

  test('is refused where it is another protocol or path, or shows what does not hold', async () => {
    const url = urlOf(await startFederation());
    const protocols = [PROTOCOL];
    expect(await refusalOf(url, { protocols: ['graphql-ws'] })).toMatchObject({ status: 400, code: 'INVALID_REQUEST' });
    expect(await refusalOf(`${url}/other`, { protocols })).toMatchObject({ status: 404 });
    const headers = { 'x-rollcall-identity': 'forged' };
    expect(await refusalOf(url, { protocols, headers })).toMatchObject({ status: 401 });
  });

  test('has 100 operations at most', async () => {
    const team = await startTeam();
    const client = clientOf('WebSocket', team, await team.tokenOf('a'));
    const all = Array.from({ length: 101 }, () => listen(client, JOINED));
    const code = 'TOO_MANY_SUBSCRIPTIONS';
    await vi.waitFor(
      () => expect(all.at(-1)?.ended).toEqual([expect.objectContaining({ extensions: { code } })]),
      WAIT,
    );
    await until(team.live, 1);
    team.live.joins(ada);
    await vi.waitFor(() => expect(all.filter(({ answers }) => answers.length === 1)).toHaveLength(100), WAIT);
  });
});

test('the token of a caller ends what it began', async () => {
  const team = await startTeam();
  const token = await team.tokenOf('a', { lasts: '5 seconds' });
  const [byWebSocket, byEvents] = [clientOf('WebSocket', team, token), clientOf('events', team, token)].map((client) =>
    listen(client, JOINED),
  );
  await vi.waitFor(() => expect(byWebSocket?.ended).toMatchObject({ code: 4403 }), WAIT);
  await vi.waitFor(() => expect(byEvents?.ended).toBeInstanceOf(Error), WAIT);
  await until(team.live, 0);
});

test('a replica that stops sends its clients elsewhere', async () => {
  const team = await startTeam();
  const [byWebSocket, byEvents] = [clientOf('WebSocket', team), clientOf('events', team)].map((client) =>
    listen(client, JOINED),
  );
  await until(team.live, 2);
  await team.service[Symbol.asyncDispose]();
  await vi.waitFor(() => expect(byWebSocket?.ended).toMatchObject({ code: 1001 }), WAIT);
  await vi.waitFor(() => expect(byEvents?.ended).toBeInstanceOf(Error), WAIT);
  await until(team.live, 0);
});
