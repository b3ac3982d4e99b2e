import { Compile } from 'typebox/compile';
import { expect, test } from 'vitest';
import { asyncApiDocument } from './asyncapi.ts';
import { createJobsTopic, jobsSource } from './channels/jobs.ts';
import { createRegistrationsTopic, registrationsSource } from './channels/registrations.ts';
import { clientMessages, closeCodes, serverMessages } from './protocol.ts';

const sources = [registrationsSource(createRegistrationsTopic()), jobsSource(createJobsTopic())];
const document = asyncApiDocument({
  version: '1.2.3',
  path: '/api/ws',
  channels: sources.flatMap(({ channels }) => channels),
});

function references(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => (key === '$ref' ? [String(each)] : references(each)));
}

function resolve(reference: string): unknown {
  const path = reference.replace('#/', '').split('/');
  return path.reduce<unknown>(
    (value, key) => Object.entries(value ?? {}).find(([name]) => name === key)?.[1],
    document,
  );
}

function names(operation: string): unknown[] {
  return references(resolve(`#/operations/${operation}/messages`)).map((reference) => {
    const [target = ''] = references(resolve(reference));
    return Object(resolve(target)).name;
  });
}

test('is an AsyncAPI 3 document whose references lead somewhere', () => {
  expect(document).toMatchObject({
    asyncapi: '3.0.0',
    info: { version: '1.2.3' },
    channels: { gateway: { address: '/api/ws' } },
  });
  const all = references(document);
  expect(all.length).toBeGreaterThan(10);
  expect(all.filter((reference) => resolve(reference) === undefined)).toEqual([]);
});

test('describes every message in the direction in which it goes', () => {
  expect(names('receive')).toEqual(Object.keys(clientMessages));
  expect(new Set(names('send'))).toEqual(new Set(Object.keys(serverMessages)));
});

test('reports that a cursor is lost with a reset, and when there is another', () => {
  expect(resolve('#/info/description')).toMatch(/reset comes first: drop the old cursor.*before the event synced/);
  expect(resolve('#/components/messages/reset/summary')).toMatch(/drop it.*synced/);
  const id = resolve('#/components/messages/event-jobs/payload/properties/id/description');
  expect(id).toMatch(/until its `synced` there is nothing to resume from/);
});

test.each(Object.values(closeCodes))('says what to do after the close code %i', (code) => {
  expect(resolve('#/info/description')).toMatch(new RegExp(`^- \`${code}\`: .+`, 'm'));
});

test('says what a refused upgrade is answered, and that a missing scope is none', () => {
  const description = String(resolve('#/info/description'));
  expect(description.match(/(?<=^- `)[45]\d\d(?=`)/gm)).toEqual(['400', '401', '429', '503']);
  expect(description).toMatch(/a missing one is answered with the message error, not with 403/);
});

test('names servers by their protocols, with the host left open', () => {
  expect(resolve('#/servers')).toEqual({
    tls: { host: '{host}', protocol: 'wss', variables: { host: { description: expect.any(String) } } },
    plain: { host: '{host}', protocol: 'ws', variables: { host: { description: expect.any(String) } } },
  });
});

test('reports which ids are good as cursors before `synced`', () => {
  expect(resolve('#/info/description')).toMatch(
    /events that were missed have ids, which are good as cursors before `synced`/,
  );
});

test.each([
  ['event-registrations', { type: 'event', channel: 'registrations', id: '4', payload: { type: 'synced' } }],
  ['event-jobs', { type: 'event', channel: 'jobs', payload: { type: 'synced' } }],
  ['event-jobs-service-name', { type: 'event', channel: 'jobs.shop', payload: { type: 'synced' } }],
  ['error', { type: 'error', id: '1', payload: { code: 'UNKNOWN_CHANNEL', message: 'no' } }],
  ['subscribe', { type: 'subscribe', channel: 'jobs', payload: { cursor: '1' } }],
])('its schema of %s is that of the messages', (name, message) => {
  const schema = resolve(`#/components/messages/${name}/payload`);
  const check = Compile(Object(schema));
  expect(check.Check(message)).toBe(true);
  expect(check.Check({ ...message, type: 'other' })).toBe(false);
});
