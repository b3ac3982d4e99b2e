import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import type { Answer } from '../support/replica.ts';
import {
  type Caller,
  type CommunicationService,
  codeOf,
  faultPaths,
  startCommunication,
} from './communication-service.ts';

const stack = new AsyncDisposableStack();
let communication: CommunicationService;
let shop: Caller;
let busy: Caller;

beforeAll(async () => {
  const { url: databaseUrl } = stack.use(await createDatabase());
  communication = stack.use(await startCommunication({ databaseUrl }));
  shop = await communication.callerOf('shop');
  busy = await communication.callerOf('busy');
});

afterAll(() => stack.disposeAsync());

function definition(subject = 'Hello {{name}}') {
  const mjml = `<mjml><mj-body><mj-section><mj-column><mj-text>Dear {{name}}</mj-text></mj-column></mj-section></mj-body></mjml>`;
  return { locales: { en: { subject, mjml } }, defaultLocale: 'en' };
}

const byText = (a: unknown, b: unknown) => String(a).localeCompare(String(b));

const names = ({ body = {} }: Answer) =>
  (body['templates'] as { name: string; builtIn: boolean }[]).map((each) => each.name);

const statusOfBusy = async (version: number) => (await shop('GET', `/templates/busy?version=${version}`)).status;

const subjectIn = async (locale: string) =>
  (await shop('POST', '/templates/tongues/preview', { body: { locale } })).body?.['subject'];

const put = (name: string, body: unknown, headers = {}) => shop('PUT', `/templates/${name}`, { body, headers });

async function versionsIn(caller: Caller, name: string): Promise<unknown> {
  const { body = {} } = await caller('GET', `/templates/${name}/versions`);
  return (body['versions'] as { version: number }[]).map(({ version }) => version);
}

test('versions are listed, newest first, with the built-in one, and are of their subject alone', async () => {
  await put('welcome', definition());
  await put('welcome', definition('Changed {{name}}'));
  expect(await versionsIn(shop, 'welcome')).toEqual([2, 1, 0]);
  expect(await versionsIn(busy, 'welcome')).toEqual([0]);
  await shop('DELETE', '/templates/welcome');
  expect(await versionsIn(shop, 'welcome')).toEqual([2, 1, 0]);
  expect((await shop('GET', '/templates/none/versions')).status).toBe(404);
});

test('a template is published, read, listed, changed as a new version, and deleted', async () => {
  const made = await put('order', definition());
  expect(made.status).toBe(201);
  expect(made.headers.get('etag')).toBe('"1"');
  expect(made.body).toMatchObject({ name: 'order', version: 1, builtIn: false, variableNames: ['name'] });
  expect((await put('order', definition())).body).toEqual(made.body);
  const changed = await put('order', definition('Hi {{name}}'));
  expect([changed.status, changed.body?.['version']]).toEqual([200, 2]);
  expect((await shop('GET', '/templates/order')).body).toEqual(changed.body);
  expect((await shop('GET', '/templates/order?version=1')).body).toMatchObject(definition());
  expect((await shop('GET', '/templates/order?version=3')).status).toBe(404);
  expect((await shop('DELETE', '/templates/order')).status).toBe(204);
  expect((await shop('DELETE', '/templates/order')).status).toBe(404);
  expect((await shop('GET', '/templates/order')).status).toBe(404);
  expect((await shop('GET', '/templates/order?version=2')).body).toMatchObject({ version: 2 });
  const again = await put('order', definition());
  expect([again.status, again.body?.['version']]).toEqual([201, 3]);
});

test('lists have the newest first, and those that are built in behind them unless they are replaced', async () => {
  const lister = await communication.callerOf('lister');
  const before = await lister('GET', '/templates');
  const builtIn = ['invoice', 'password-reset', 'payment-failed', 'receipt', 'welcome'];
  expect(names(before).toSorted(byText)).toEqual(builtIn);
  expect(before.body).toMatchObject({ total: 5, limit: 20, offset: 0, nextCursor: null });
  await lister('PUT', '/templates/a', { body: definition() });
  await lister('PUT', '/templates/welcome', { body: definition() });
  const after = await lister('GET', '/templates?limit=3');
  expect(names(after).slice(0, 2)).toEqual(['welcome', 'a']);
  expect(after.body).toMatchObject({
    total: 6,
    templates: [{ version: 1, builtIn: false }, {}, { version: 0, builtIn: true }],
  });
  const rest = await lister('GET', `/templates?limit=3&cursor=${String(after.body?.['nextCursor'])}`);
  expect([...names(after), ...names(rest)].toSorted(byText)).toEqual(['a', ...builtIn]);
});

test('one that is built in can be replaced, stays readable as version 0, and is back when its replacement is deleted', async () => {
  const original = await shop('GET', '/templates/receipt');
  expect(original.body).toMatchObject({ version: 0, builtIn: true });
  expect((await put('receipt', definition(), { 'if-none-match': '*' })).status).toBe(412);
  expect((await put('receipt', definition(), { 'if-match': '"0"' })).status).toBe(201);
  expect((await shop('GET', '/templates/receipt')).body).toMatchObject({ version: 1, builtIn: false });
  expect((await shop('GET', '/templates/receipt?version=0')).body).toEqual(original.body);
  await shop('DELETE', '/templates/receipt');
  expect((await shop('GET', '/templates/receipt')).body).toEqual(original.body);
  expect((await shop('DELETE', '/templates/receipt')).status).toBe(404);
});

test('of changes to the same version one is kept, and its repetition is no change', async () => {
  await put('race', definition('0 {{name}}'));
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, each) => put('race', definition(`${each + 1} {{name}}`), { 'if-match': '"1"' })),
  );
  expect(answers.map(({ status }) => status).toSorted(byText)).toEqual([200, ...Array(7).fill(412)]);
  const kept = answers.find(({ status }) => status === 200);
  expect(kept?.body?.['version']).toBe(2);
  const [first = ''] = Object.values((kept?.body?.['locales'] as Record<string, { subject: string }>) ?? {}).map(
    ({ subject }) => subject,
  );
  expect((await put('race', definition(first), { 'if-match': '"1"' })).body).toEqual(kept?.body);
  expect((await shop('DELETE', '/templates/race', { headers: { 'if-match': '"1"' } })).status).toBe(412);
  expect((await shop('DELETE', '/templates/race', { headers: { 'if-match': '"2"' } })).status).toBe(204);
});

test('only the newest fifty versions are kept', async () => {
  for (let version = 1; version <= 52; version += 1) await put('busy', definition(`${version} {{name}}`));
  expect(await Promise.all([2, 3, 52].map(statusOfBusy))).toEqual([404, 200, 200]);
});

test('another subject sees nothing of it, but for who administers templates', async () => {
  await put('mine', definition());
  const other = await communication.callerOf('other');
  const missing = await other('GET', '/templates/none');
  for (const [method, path] of [
    ['GET', '/templates/mine'],
    ['GET', '/templates/mine?subject=shop'],
    ['DELETE', '/templates/mine'],
    ['DELETE', '/templates/mine?subject=shop'],
    ['GET', '/templates?subject=shop'],
  ] as const) {
    const answer = await other(method, path);
    expect([answer.status, answer.body]).toEqual([404, missing.body]);
  }
  expect((await other('PUT', '/templates/mine?subject=shop', { body: definition() })).status).toBe(404);
  expect((await other('POST', '/templates/mine/preview', { body: {} })).status).toBe(404);
  const admin = await communication.callerOf('root', 'messages:read templates:admin');
  expect((await admin('GET', '/templates/mine?subject=shop')).status).toBe(200);
  expect((await admin('DELETE', '/templates/mine?subject=shop')).status).toBe(403);
  expect((await admin('GET', '/templates/mine')).status).toBe(404);
});

const HOSTILE = ['{{7*7}}', '<mj-include path="/etc/passwd" />', '<img src=x onerror=alert(1)>', '{% include "x" %}'];

test.each(HOSTILE)('a value of %s arrives as these letters', async (value) => {
  await put('hostile', definition());
  const { body } = await shop('POST', '/templates/hostile/preview', { body: { variables: { name: value } } });
  expect(body).toMatchObject({ name: 'hostile', locale: 'en', subject: `Hello ${value}` });
  expect(String(body?.['text'])).toContain(value);
  expect(String(body?.['html'])).not.toMatch(/<img|<mj-|root:/);
});

test('a preview names all variables that are missing or unknown', async () => {
  const variables = {
    type: 'object',
    properties: { a: { type: 'string' }, b: {} },
    required: ['a', 'b'],
    additionalProperties: false,
  };
  await put('strict', {
    ...definition('{{a}} {{b}}'),
    locales: { en: { subject: '{{a}} {{b}}', text: 'x' } },
    variables,
  });
  const answer = await shop('POST', '/templates/strict/preview', { body: { variables: { a: 1, c: 2 } } });
  expect([answer.status, codeOf(answer)]).toEqual([422, 'TEMPLATE_VARIABLES']);
  expect(faultPaths(answer)).toEqual(['body/variables/a', 'body/variables/b', 'body/variables/c']);
  const line = await shop('POST', '/templates/strict/preview', {
    body: { variables: { a: 'x\r\nBcc: e@x.example', b: 1 } },
  });
  expect(line.body).toMatchObject({ subject: 'x Bcc: e@x.example 1' });
});

const deep = `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`;
const source = (fields: object) => ({ locales: { en: { subject: 's', ...fields } }, defaultLocale: 'en' });

test.each([
  ['no locale', { locales: {}, defaultLocale: 'en' }, ['body/locales']],
  ['another default', { ...source({ text: 'x' }), defaultLocale: 'fr' }, ['body/defaultLocale']],
  [
    'a locale that is none',
    { locales: { 'e!': { subject: 's', text: 't' } }, defaultLocale: 'e!' },
    ['body/locales/e!'],
  ],
  ['an include', source({ mjml: '<mjml><mj-include path="/etc/passwd"/></mjml>' }), ['body/locales/en/mjml']],
  ['a tag that reads files', source({ text: "{% include 'a' %}" }), ['body/locales/en/text']],
  ['nesting without end', source({ html: '{% if a %}'.repeat(9000) }), ['body/locales/en/html']],
  ['a member that is not known', { ...source({ text: 'x' }), colour: 1 }, ['body/colour']],
  ['a schema that is none', { ...source({ text: 'x' }), variables: { type: 'string' } }, ['body/variables/type']],
  [
    'several faults at once',
    { locales: { en: { subject: '{{', html: '{{', text: '{%' } }, defaultLocale: 'de' },
    ['body/defaultLocale', 'body/locales/en/html', 'body/locales/en/subject', 'body/locales/en/text'],
  ],
])('a template with %s is refused', async (_what, body, paths) => {
  const answer = await put('refused', body);
  expect([answer.status, codeOf(answer)]).toEqual([400, 'INVALID_REQUEST']);
  expect(faultPaths(answer)).toEqual(paths);
});

test.each([
  ['10 MB', JSON.stringify(source({ text: 'x'.repeat(10_000_000) })), 413],
  [
    'a schema of fifty thousand levels',
    `{"locales":{"en":{"subject":"s","text":"t"}},"defaultLocale":"en","variables":{"type":"object","default":${deep}}}`,
    400,
  ],
  [
    'a name that would change every object',
    '{"locales":{"__proto__":{"subject":"s","text":"t"}},"defaultLocale":"en"}',
    400,
  ],
])('a template of %s is refused, and the service goes on', async (_what, text, status) => {
  expect((await shop('PUT', '/templates/large', { text })).status).toBe(status);
  expect((await shop('GET', '/health')).status).toBe(200);
});

test.each(['a%2Fb', 'a%0D%0Ab', '%00', '..%2f', 'ü', 'x'.repeat(65), '-a'])(
  'a template cannot be named %s',
  async (name) => {
    expect((await put(name, definition())).status).toBe(400);
    expect((await shop('GET', `/templates/${name}`)).status).toBe(400);
  },
);

test('a template that loops for ever ends as a fault, and others are rendered meanwhile', async () => {
  const loop = '{% for a in (1..100000) %}{% for b in (1..100000) %}x{% endfor %}{% endfor %}';
  await put('loop', source({ text: loop }));
  const answer = await shop('POST', '/templates/loop/preview', { body: {} });
  expect([answer.status, codeOf(answer)]).toEqual([422, 'TEMPLATE_VARIABLES']);
  expect((await shop('POST', '/templates/hostile/preview', { body: { variables: { name: 'x' } } })).status).toBe(200);
});

test('languages fall back by their subtags, and unicode stays as it is', async () => {
  await put('tongues', {
    locales: { en: { subject: 'Hello', text: 'x' }, 'pt-BR': { subject: 'Olá 👋', text: 'x' } },
    defaultLocale: 'en',
  });
  expect(await Promise.all(['pt-br-x-a', 'PT-BR', 'pt', 'zu'].map(subjectIn))).toEqual([
    'Olá 👋',
    'Olá 👋',
    'Hello',
    'Hello',
  ]);
});

test('a preview of a marketing mail shows the link to unsubscribe, and of another one has none', async () => {
  const variables = { company: 'Shop', url: 'https://shop.example/' };
  const marketing = await shop('POST', '/templates/welcome/preview', { body: { variables, category: 'marketing' } });
  const url = 'https://gateway.example/unsubscribe/preview';
  expect(marketing.body).toMatchObject({
    html: expect.stringContaining(`<a href="${url}">Unsubscribe</a>`),
    text: expect.stringContaining(url),
  });
  const other = await shop('POST', '/templates/welcome/preview', { body: { variables } });
  expect(JSON.stringify(other.body)).not.toContain('nsubscribe');
});

const preview = () => busy('POST', '/templates/welcome/preview', { body: {} });

test('previews are counted, and refused beyond their limit', async () => {
  const first = await preview();
  expect(first.headers.get('ratelimit')).toContain('preview');
  await Promise.all(Array.from({ length: 119 }, preview));
  const refused = await preview();
  expect([refused.status, codeOf(refused)]).toEqual([429, 'RATE_LIMITED']);
  expect((await shop('POST', '/templates/welcome/preview', { body: {} })).status).toBe(422);
});
