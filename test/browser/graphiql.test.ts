import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { buildSchema, type ExecutionResult, graphql } from 'graphql/index.js';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient, startBackend, startGateway, tokenOf } from '../gateway/gateway.ts';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { hasChromium, launchChromium } from './chromium.ts';
import { open } from './pages.ts';

const stack = new AsyncDisposableStack();
const WAIT = { timeout: 60_000 };
const schema = buildSchema('type Query { users: [String!]! } type Subscription { joined: String }');
/** Streams of subscriptions that are open. */
const streams = new Set<ServerResponse>();
let gateway: RunningService;
let token: string;

/** Undefined: it is a subscription. */
async function answerTo(request: IncomingMessage): Promise<ExecutionResult | undefined> {
  const asked = await json(request);
  const { query: source } = asked as { readonly query: string };
  if (source.startsWith('subscription')) return undefined;
  return graphql({ schema, source, rootValue: { users: ['Ada'] } });
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const answered = await answerTo(request);
  if (answered !== undefined) {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(answered));
    return;
  }
  streams.add(response);
  response.once('close', () => streams.delete(response));
  response.setHeader('content-type', 'text/event-stream');
  response.write(':\n\nevent: next\ndata: {"data":{"joined":"Grace"}}\n\n');
}

beforeAll(async () => {
  const namespace = await createNamespace('graphiql');
  const { url: databaseUrl } = stack.use(await createDatabase());
  const registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl }));
  const graph = stack.use(await startBackend((request, response) => void answer(request, response)));
  await registry.call('POST', '/services/register', { service_name: 'federation', service_url: graph.url });
  gateway = stack.use(await startGateway({ namespace, registry: registry.url }));
  token = await tokenOf(gateway, await createClient(namespace, { id: 'ada' }));
});

afterAll(() => stack.disposeAsync());

test('the page and its files are there without a token, and allow nothing of other places', async () => {
  const page = await fetch(`${gateway.url}/api/graphiql`);
  const text = await page.text();
  const links = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link = '']) => link);
  expect(links.length).toBeGreaterThan(4);
  for (const link of links) {
    expect(link).toMatch(/^graphiql\/[a-z-]+\.(?:js|css)$/);
    const file = await fetch(new URL(link, page.url));
    expect(file.status).toBe(200);
    expect(file.headers.get('content-type')).toContain(link.endsWith('.js') ? 'javascript' : 'css');
    expect(await file.text()).not.toBe('');
  }
  const policy = page.headers.get('content-security-policy');
  expect(policy).toContain("default-src 'none'; script-src 'self';");
  expect(policy).not.toMatch(/unsafe-eval|https?:/);
  expect((await fetch(`${gateway.url}/api/graphiql`, { method: 'POST' })).status).toBe(405);
});

async function typeInto(page: Page, editor: string, text: string): Promise<void> {
  await page.locator(`${editor} .CodeMirror`).locator('visible=true').first().click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(text);
}

describe.runIf(hasChromium)('in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = stack.use(await launchChromium());
  });

  test('who types a token in reads the graph, and the policy of the page is kept', async () => {
    await using opened = await open(browser, `${gateway.url}/api/graphiql`);
    const { page, violations } = opened;
    await page.locator('.graphiql-query-editor .CodeMirror').waitFor(WAIT);
    await typeInto(page, '.graphiql-query-editor', '{ users }');
    const results = page.locator('.result-window');
    await page.getByRole('button', { name: /execute query/i }).click();
    await expect.poll(() => results.innerText(), WAIT).toContain('UNAUTHENTICATED');
    await typeInto(page, '.graphiql-editor-tool', JSON.stringify({ authorization: `Bearer ${token}` }));
    await page.getByRole('button', { name: /execute query/i }).click();
    await expect.poll(() => results.innerText(), WAIT).toContain('"Ada"');
    await page.getByRole('button', { name: /documentation explorer/i }).click();
    await page.getByRole('link', { name: 'Query', exact: true }).click(WAIT);
    await page.getByRole('link', { name: 'users' }).waitFor(WAIT);
    await typeInto(page, '.graphiql-query-editor', 'subscription { joined }');
    await page.getByRole('button', { name: /execute query/i }).click();
    await expect.poll(() => results.innerText(), WAIT).toContain('"Grace"');
    await page.getByRole('button', { name: /stop query/i }).click();
    await expect.poll(() => streams.size, WAIT).toBe(0);
    expect(await page.evaluate('JSON.stringify([localStorage, sessionStorage, document.cookie])')).not.toContain(token);
    expect(violations).toEqual([]);
  });
});
