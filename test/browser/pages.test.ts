import { randomBytes, randomUUID } from 'node:crypto';
import { createUnsubscribeLinks } from '@rollcall/communication/domain/unsubscribe.ts';
import { createInvoiceLinks } from '@rollcall/payment/billing/pages/invoice-page.ts';
import { createBlindIndex, createVault } from '@rollcall/platform/vault.ts';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCommunication } from '../communication/communication-service.ts';
import { type Caller, idOf } from '../payment/billing-service.ts';
import { madePayment, type PaymentService, startPayment, untilPayment } from '../payment/payment-service.ts';
import { createDatabase } from '../support/postgres.ts';
import { hasChromium, launchChromium } from './chromium.ts';
import { findBarriers, open, pressWithKeyboard } from './pages.ts';

const key = randomBytes(32);
const keys = [{ id: 'one', key }];
const written = keys.map(({ id }) => ({ id, key: key.toString('base64') }));
const withoutScripts = { javaScriptEnabled: false };

const stack = new AsyncDisposableStack();
let browser: Browser;
let payment: PaymentService;
let shop: Caller;

beforeAll(async () => {
  if (!hasChromium) return;
  browser = await launchChromium();
  stack.defer(() => browser.close());
  payment = stack.use(await startPayment({}, { ROLLCALL_VAULT_KEYS_FILE: { keys: written } }));
  shop = await payment.callerOf('shop', 'billing:write billing:read payments:write payments:read');
});

afterAll(() => stack.disposeAsync());

const newCustomer = async () => idOf(await shop.post('/customers', { email: 'ann@example.com', name: 'Ann' }));

const isAtPayFast = ({ origin }: URL) => origin === payment.payfast.url;

/** The link of a mail about an invoice. */
const linkOf = (invoiceId: string) =>
  createInvoiceLinks(createBlindIndex(keys, 'invoice link'), payment.front.url).urlOf(invoiceId);

async function invoiceUrl(): Promise<string> {
  const customerId = await newCustomer();
  const items = [{ description: 'Tea', amount: 24_167, quantity: 1, taxRate: 15 }];
  return linkOf(idOf(await shop.post('/invoices', { customerId, items, finalize: true })));
}

/** Of a subscription whose invoices are paid at a provider. */
async function invoiceUrlAt(provider: string): Promise<string> {
  const plan = { name: 'Tea', amount: 10_000, currency: 'ZAR', interval: 'month' };
  const planId = idOf(await shop.post('/plans', plan));
  const body = { customerId: await newCustomer(), planId, provider, collection: 'send_invoice' };
  const { body: list } = await shop.get(`/invoices?subscriptionId=${idOf(await shop.post('/subscriptions', body))}`);
  const { invoices } = list as { invoices: { id: string }[] };
  return linkOf(invoices[0]?.id ?? '');
}

describe.runIf(hasChromium)('pages of payment', () => {
  test('work by keyboard alone, without scripts', async () => {
    const made = await madePayment(shop, { returnUrl: 'https://shop.example.com/' });
    await using opened = await open(browser, made.url, withoutScripts);
    const { page, violations } = opened;
    expect(await findBarriers(browser, page)).toEqual([]);
    await pressWithKeyboard(page, 'Pay');
    await page.getByText('has been received').waitFor();
    expect(await findBarriers(browser, page)).toEqual([]);
    expect(violations).toEqual([]);
    await untilPayment(shop, made.id, 'succeeded');
  });

  test('for who came back without paying, and of no payment', async () => {
    const made = await madePayment(shop);
    await using cancelled = await open(browser, `${made.url}/cancel`, withoutScripts);
    expect(await findBarriers(browser, cancelled.page)).toEqual([]);
    await pressWithKeyboard(cancelled.page, 'Pay after all');
    await cancelled.page.getByRole('button', { name: 'Decline' }).waitFor();
    await using missing = await open(browser, `${payment.front.url}/pay/x`, withoutScripts);
    expect(await findBarriers(browser, missing.page)).toEqual([]);
    expect([...cancelled.violations, ...missing.violations]).toEqual([]);
  });

  test('lead to PayFast by themselves, and by a button where there are no scripts', async () => {
    const { url } = await madePayment(shop, { provider: 'payfast' });
    await using automatic = await open(browser, url);
    await automatic.page.waitForURL(isAtPayFast);
    await using manual = await open(browser, url, withoutScripts);
    expect(await findBarriers(browser, manual.page)).toEqual([]);
    await pressWithKeyboard(manual.page, 'Go on to the payment page');
    await manual.page.waitForURL(isAtPayFast);
    expect([...automatic.violations, ...manual.violations]).toEqual([]);
  });
});

describe.runIf(hasChromium)('the page of an invoice', () => {
  test('leads to the payment, without scripts', async () => {
    const url = await invoiceUrl();
    await using opened = await open(browser, url, withoutScripts);
    const { page, violations } = opened;
    expect(await findBarriers(browser, page)).toEqual([]);
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download the invoice' }).click(),
    ]);
    expect(file.suggestedFilename()).toMatch(/^INV-\d{6}\.pdf$/);
    expect(await file.failure()).toBeNull();
    await pressWithKeyboard(page, 'Pay');
    await page.getByRole('button', { name: 'Decline' }).waitFor();
    expect(new URL(page.url()).origin).toBe(payment.front.url);
    await pressWithKeyboard(page, 'Pay');
    await page.getByText('has been received').waitFor();
    await page.goto(url);
    expect(await findBarriers(browser, page)).toEqual([]);
    expect(await page.getByRole('status').innerText()).toContain('is paid');
    expect(violations).toEqual([]);
  });
});

test.runIf(hasChromium)('an invoice leads to a provider elsewhere, which its page allows no form to', async () => {
  for (const options of [{}, withoutScripts]) {
    await using opened = await open(browser, await invoiceUrlAt('yoco'), options);
    await pressWithKeyboard(opened.page, 'Pay');
    await opened.page.waitForURL(({ origin }) => origin === payment.yoco.url);
    expect(opened.violations).toEqual([]);
  }
});

test.runIf(hasChromium)('the page for unsubscribing works by keyboard alone, without scripts', async () => {
  const { url: databaseUrl } = stack.use(await createDatabase());
  const communication = stack.use(await startCommunication({ databaseUrl, keys: written }));
  const links = createUnsubscribeLinks(createVault(keys), communication.service.url);
  const link = links.urlOf({ subject: 'shop', recipient: 'ann@example.com', messageId: randomUUID() });
  const { pathname } = new URL(link);
  await using opened = await open(browser, `${communication.service.url}${pathname}`, withoutScripts);
  const { page, violations } = opened;
  expect(await findBarriers(browser, page)).toEqual([]);
  await pressWithKeyboard(page, 'Unsubscribe');
  await page.getByRole('button', { name: 'Subscribe again' }).waitFor();
  expect(await findBarriers(browser, page)).toEqual([]);
  await pressWithKeyboard(page, 'Subscribe again');
  await page.getByRole('heading', { name: 'Subscribed' }).waitFor();
  expect(violations).toEqual([]);
});

test.runIf(hasChromium)('what is against the policy of a page is found, and so are barriers', async () => {
  const { url } = await madePayment(shop);
  await using opened = await open(browser, url);
  const { page, violations } = opened;
  const wrong = '<input><p style="color: #eee">pale</p><img src="https://example.com/x.png">';
  await page.evaluate(`document.body.insertAdjacentHTML('beforeend', ${JSON.stringify(wrong)})`);
  await expect.poll(() => violations.join()).toContain('img-src');
  const barriers = (await findBarriers(browser, page)).join('\n');
  for (const rule of ['light color-contrast', 'label', 'image-alt']) expect(barriers).toContain(rule);
});
