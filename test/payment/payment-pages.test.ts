import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Caller } from './billing-service.ts';
import { choose, madePayment, type PaymentService, startPayment, untilPayment } from './payment-service.ts';

const stack = new AsyncDisposableStack();
let payment: PaymentService;
let shop: Caller;

beforeAll(async () => {
  payment = stack.use(await startPayment());
  shop = await payment.callerOf('shop');
});

afterAll(() => stack.disposeAsync());

test('a form goes to the provider alone, by itself or by its button, and is kept nowhere', async () => {
  const { url } = await madePayment(shop, { provider: 'payfast', itemName: '"><script>alert(1)</script>' });
  const response = await fetch(url);
  expect(response.status).toBe(200);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-frame-options': 'DENY',
    'content-type': 'text/html; charset=utf-8',
  });
  const policy = String(response.headers.get('content-security-policy'));
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain(`form-action ${payment.payfast.url};`);
  expect(policy).not.toContain('unsafe');
  const page = await response.text();
  expect(page).not.toContain('<script>alert');
  expect(page.match(/<script>/g)).toHaveLength(1);
  expect(page).toContain('<html lang="en">');
  expect(page).toContain('<button type="submit">');
});

test('the sandbox takes a decision once', async () => {
  const made = await madePayment(shop, { returnUrl: 'https://shop.example.com/thanks?a=1&b=2' });
  const page = await (await fetch(made.url)).text();
  for (const name of ['Pay', 'Decline', 'Cancel']) expect(page).toContain(`>${name}</button>`);
  const decided = await choose(made, 'decline');
  expect([decided.status, decided.headers.get('location')]).toEqual([303, `${made.url}/return`]);
  const back = await (await fetch(`${made.url}/return`)).text();
  expect(back).toContain('was not successful');
  expect(back).toContain('https://shop.example.com/thanks?a=1&#38;b=2');
  await choose(made, 'pay');
  expect((await untilPayment(shop, made.id, 'failed')).body).toMatchObject({ reason: 'declined' });
  expect(await (await fetch(made.url)).text()).not.toContain('<form');
});

test('who comes back without paying may pay after all', async () => {
  const made = await madePayment(shop, { returnUrl: 'https://shop.example.com/basket' });
  const page = await (await fetch(`${made.url}/cancel`)).text();
  expect(page).toContain('without paying');
  expect(page).toContain('href="https://shop.example.com/basket"');
  expect(page).toContain(`href="${made.url}"`);
  expect((await shop.get(`/payments/${made.id}`)).body).toMatchObject({ status: 'pending' });
});

test('a token that is none opens nothing', async () => {
  for (const path of ['/pay/x', '/pay/x/return', '/pay/x/cancel', `/pay/${'A'.repeat(43)}`]) {
    const response = await fetch(`${payment.front.url}${path}`);
    expect(response.status).toBe(404);
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
  }
  expect((await fetch(`${payment.front.url}/pay/x`, { method: 'POST' })).status).toBe(404);
});
