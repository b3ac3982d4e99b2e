import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import {
  type BillingService,
  type Caller,
  codeOf,
  connectTo,
  faultsOf,
  idOf,
  sellers,
  startBilling,
} from './billing-service.ts';
import { textOf } from './pdf-text.ts';

const stack = new AsyncDisposableStack();
let databaseUrl: string;
let billing: BillingService;
let shop: Caller;
let customerId: string;

const tea = { description: 'Tea', amount: 24_167, quantity: 1, taxRate: 15 };

beforeAll(async () => {
  ({ url: databaseUrl } = stack.use(await createDatabase()));
  billing = stack.use(await startBilling({ databaseUrl, files: sellers }));
  shop = await billing.callerOf('shop');
  const customer = { email: 'ann@example.com', name: 'Ann', address: ['5 Short Road'], timeZone: 'Pacific/Kiritimati' };
  customerId = idOf(await shop.post('/customers', customer));
});

afterAll(() => stack.disposeAsync());

const invoice = (more: object = {}) => ({ customerId, items: [tea], ...more });

async function issued(more: object = {}): Promise<string> {
  return idOf(await shop.post('/invoices', invoice({ finalize: true, ...more })));
}

describe('an invoice', () => {
  test('keeps metadata of its caller from the draft on, whatever its names', async () => {
    const metadata = { order: '7', tax: 'none', gross: '12' };
    const draft = await shop.post('/invoices', invoice({ metadata }));
    expect(draft.body).toMatchObject({ status: 'draft', metadata });
    const path = `/invoices/${idOf(draft)}`;
    expect((await shop.post(`${path}/finalize`)).body).toMatchObject({ status: 'open', metadata });
    expect((await shop.get(path)).body).toMatchObject({ metadata });
    expect((await shop.get(`/invoices/${await issued()}`)).body).toMatchObject({ metadata: {} });
    await using database = await connectTo(databaseUrl);
    const { rows } = await database.query<{ text: string }>(`SELECT encode(sealed, 'escape') AS text FROM invoices`);
    for (const { text } of rows) expect(text).not.toContain('order');
    expect(faultsOf(await shop.post('/invoices', invoice({ metadata: { 'a b': 'x' } })))).toEqual([
      'body/metadata/a b',
    ]);
  });

  test('is a draft, then has its number, date and parties for good', async () => {
    const draft = await shop.post('/invoices', invoice({ daysUntilDue: 30 }));
    expect(draft.status).toBe(201);
    expect(draft.body).toMatchObject({
      status: 'draft',
      number: null,
      currency: 'ZAR',
      subtotal: 24_167,
      tax: 3_625,
      total: 27_792,
      amountDue: 27_792,
      taxes: [{ taxRate: 15, subtotal: 24_167, tax: 3_625 }],
    });
    const path = `/invoices/${idOf(draft)}`;
    expect(codeOf(await shop.get(`${path}/pdf`))).toBe('CONFLICT');
    const open = await shop.post(`${path}/finalize`);
    expect(open.body).toMatchObject({ status: 'open', number: expect.stringMatching(/^INV-\d{6}$/) });
    // Fourteen hours before UTC.
    const today = Temporal.Now.plainDateISO('Pacific/Kiritimati');
    expect(open.body).toMatchObject({ issuedOn: today.toString(), dueOn: today.add({ days: 30 }).toString() });
    expect((await shop.post(`${path}/finalize`)).body).toEqual(open.body);
    expect(draft.body).toMatchObject({ pageUrl: null });
    const page = new URL(String(open.body?.['pageUrl'])).pathname;
    const shown = await fetch(`${billing.service.url}${page}`);
    expect([shown.status, await shown.text()]).toEqual([200, expect.stringContaining(String(open.body?.['number']))]);
    await shop.patch(`/customers/${customerId}`, { name: 'Another' });
    const [one, two] = [await pdfOf(path), await pdfOf(path)];
    const file = await fetch(`${billing.service.url}${page}/pdf`);
    expect(Buffer.from(await file.arrayBuffer()).equals(one)).toBe(true);
    await shop.patch(`/customers/${customerId}`, { name: 'Ann' });
    expect(one).toEqual(two);
    expect(one.subarray(0, 5).toString()).toBe('%PDF-');
    expect(textOf(one)).toMatch(/Tax Invoice[\s\S]*Kettle \(Pty\) Ltd +Ann[\s\S]*Total ZAR +277\.92|^none$/);
  });

  test('is a file for who has the link of its page, and for nobody else', async () => {
    const made = await shop.get(`/invoices/${await issued()}`);
    const page = `${billing.service.url}${new URL(String(made.body?.['pageUrl'])).pathname}`;
    const [, href = ''] = /<a href="([^"]+)">Download/.exec(await (await fetch(page)).text()) ?? [];
    const file = await fetch(new URL(href, page));
    expect(file.status).toBe(200);
    expect(Object.fromEntries(file.headers)).toMatchObject({
      'content-type': 'application/pdf',
      'content-disposition': `attachment; filename="${String(made.body?.['number'])}.pdf"`,
      'content-security-policy': expect.stringContaining("default-src 'none'"),
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
    const other = await issued();
    for (const wrong of [page.replace(/[\w-]{43}$/, 'A'.repeat(43)), page.replace(idOf(made), other), `${page}x`]) {
      const refused = await fetch(`${wrong}/pdf`);
      expect([refused.status, refused.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    }
  });

  test('that costs nothing is paid', async () => {
    const free = await shop.post('/invoices', invoice({ items: [{ ...tea, amount: 0 }], finalize: true }));
    expect(free.body).toMatchObject({ status: 'paid', total: 0, amountDue: 0 });
  });

  test('has its tax by line, half away from zero, and lines that add up (A18)', async () => {
    const items = Array.from({ length: 50 }, () => ({ ...tea, amount: 241_67 }));
    const { body } = await shop.post('/invoices', invoice({ items, finalize: true, currency: 'ZAR' }));
    expect(taxesOf(body)).toEqual(Array(50).fill(3_625));
    expect(body).toMatchObject({ tax: 50 * 3_625, total: 50 * (24_167 + 3_625) });
    const pdf = await pdfOf(`/invoices/${String(body?.['id'])}`);
    expect(textOf(pdf)).toMatch(/VAT 15 % of 12083.50 +1812.50|^none$/m);
    const halves = [
      { ...tea, amount: 10, taxRate: 5 },
      { ...tea, amount: -10, taxRate: 5 },
      { ...tea, amount: 100, taxRate: 0 },
    ];
    const signs = await shop.post('/invoices', invoice({ items: halves }));
    expect(taxesOf(signs.body)).toEqual([1, -1, 0]);
  });

  test('is taken back until it is paid, and keeps its number', async () => {
    const path = `/invoices/${await issued()}`;
    const { number } = (await shop.get(path)).body ?? {};
    expect((await shop.post(`${path}/void`)).body).toMatchObject({ status: 'void', number, amountDue: 0 });
    expect((await shop.post(`${path}/void`)).body).toMatchObject({ status: 'void', number });
    expect(codeOf(await shop.post(`${path}/finalize`))).toBe('CONFLICT');
    expect((await shop.get(`${path}/pdf`)).status).toBe(200);
    const free = await shop.post('/invoices', invoice({ items: [{ ...tea, amount: 0 }], finalize: true }));
    expect(codeOf(await shop.post(`/invoices/${idOf(free)}/void`))).toBe('CONFLICT');
    const draft = await shop.post('/invoices', invoice());
    expect((await shop.post(`/invoices/${idOf(draft)}/void`)).body).toMatchObject({ status: 'void', number: null });
  });

  test('above R5 000 needs the address of its recipient', async () => {
    const { body } = await shop.post('/customers', { email: 'bob@example.com', name: 'Bob' });
    const items = [{ ...tea, amount: 500_000 }];
    const answer = await shop.post('/invoices', { customerId: body?.['id'], items, finalize: true });
    expect(answer.status).toBe(422);
    expect(answer.body).toMatchObject({
      error: { code: 'TAX_INVOICE_INCOMPLETE', details: { missing: ['recipient.address'] } },
    });
    // What is refused leaves nothing.
    expect((await shop.get(`/invoices?customerId=${String(body?.['id'])}`)).body).toMatchObject({ total: 0 });
    expect((await shop.post('/invoices', { customerId: body?.['id'], items })).status).toBe(201);
  });

  test('is not changed by anybody who has the database', async () => {
    const id = await issued();
    await using client = await connectTo(databaseUrl);
    for (const change of [
      "SET currency = 'USD'",
      'SET gross = 1, net = 1, tax = 0',
      "SET number = 'X'",
      "SET state = 'draft'",
    ])
      await expect(client.query(`UPDATE invoices ${change} WHERE id = $1`, [id])).rejects.toThrow('issued');
    await expect(client.query('DELETE FROM invoices WHERE id = $1', [id])).rejects.toThrow('issued');
    await expect(client.query('UPDATE invoice_series SET last = last - 1')).rejects.toThrow('upwards');
  });

  test('tells of itself, without whom it is about', async () => {
    const id = await issued();
    await using client = await connectTo(databaseUrl);
    const { rows } = await client.query('SELECT type, subject FROM events WHERE resource_id = $1', [id]);
    expect(rows).toEqual([{ type: 'invoice.finalized', subject: 'shop' }]);
  });

  test('of one key is one, also with fifty calls at a time', async () => {
    const key = randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => shop.post('/invoices', invoice({ finalize: true }), key)),
    );
    expect(new Set(answers.map(({ body }) => body?.['number'])).size).toBe(1);
  });

  test('is of its subject alone, and for its customers', async () => {
    const other = await billing.callerOf('other');
    const id = await issued();
    for (const path of ['', '/pdf']) expect((await other.get(`/invoices/${id}${path}`)).status).toBe(404);
    for (const path of ['finalize', 'void', 'credit-notes'])
      expect((await other.post(`/invoices/${id}/${path}`, path === 'credit-notes' ? {} : undefined)).status).toBe(404);
    expect(codeOf(await other.post('/invoices', invoice()))).toBe('CUSTOMER_NOT_FOUND');
    const dear = { description: 'Yacht', amount: 1_000_000_000_000, quantity: 2 };
    const much = { ...invoice(), items: [{ ...dear, quantity: 1 }, dear, dear] };
    expect(faultsOf(await other.post('/invoices', much))).toEqual(['body/customerId', 'body/items/1', 'body/items/2']);
    expect((await other.get('/invoices')).body).toMatchObject({ total: 0 });
    expect((await shop.get(`/invoices?customerId=${customerId}&status=open&limit=1`)).body).toMatchObject({ limit: 1 });
    expect((await shop.get('/invoices?customerId=nobody')).body).toMatchObject({ total: 0 });
  });

  test.each([
    ['nothing', { items: [] }, ['body/items']],
    ['half a cent', { items: [{ ...tea, amount: 0.5 }] }, ['body/items/0/amount']],
    ['a text', { items: [{ ...tea, amount: '100', quantity: 0 }] }, ['body/items/0/amount', 'body/items/0/quantity']],
    ['too large a number', { items: [{ ...tea, amount: 2 ** 53 }] }, ['body/items/0/amount']],
    ['a line break', { items: [{ ...tea, description: 'Tea\r\nX' }] }, ['body/items/0/description']],
    ['what there is not', { items: [{ ...tea, total: 1 }], number: 'INV-1' }, ['body/items/0/total', 'body/number']],
    ['no customer', { customerId: undefined, currency: 'ZZZ' }, ['body/currency', 'body/customerId']],
    ['a rate above all', { items: [{ ...tea, taxRate: 101 }] }, ['body/items/0/taxRate']],
  ])('of %s is refused', async (_what, change, paths) => {
    expect(faultsOf(await shop.post('/invoices', invoice(change)))).toEqual(paths);
  });

  test.each([
    ['a negative total', [{ ...tea, amount: -1 }]],
    ['more than can be paid', [{ ...tea, amount: 1_000_000_000_000 }]],
    ['lines that are too long for numbers', [1, -1].map((sign) => ({ ...tea, amount: sign * 1e12, quantity: 1e6 }))],
  ])('of %s is refused', async (_what, items) => {
    expect(codeOf(await shop.post('/invoices', invoice({ items })))).toBe('INVOICE_TOTAL_NOT_ALLOWED');
  });
});

describe('a credit note', () => {
  test('takes back parts until nothing is left, with all of their tax', async () => {
    const path = `/invoices/${await issued()}`;
    const taxes: number[] = [];
    for (const amount of [10_000, 10_000, undefined]) {
      const { body, status } = await shop.post(`${path}/credit-notes`, { items: [{ line: 0, amount }] });
      expect(status).toBe(201);
      expect(body?.['number']).toMatch(/^CN-\d{6}$/);
      taxes.push(Number(body?.['tax']));
    }
    expect(taxes.reduce((sum, tax) => sum + tax)).toBe(3_625);
    expect((await shop.get(path)).body).toMatchObject({ status: 'paid', amountDue: 0, amountCredited: 27_792 });
    const { body: invoice } = await shop.get(path);
    const { creditNotes } = invoice as { creditNotes: { id: string }[] };
    const notePath = `${path}/credit-notes/${creditNotes[0]?.id}`;
    const pdf = await pdfOf(notePath);
    expect(textOf(pdf)).toMatch(/Credit Note[\s\S]*Credit for invoice: INV-|^none$/);
    expect(await pdfOf(notePath)).toEqual(pdf);
    expect((await shop.get(`${path}/credit-notes/${randomUUID()}/pdf`)).status).toBe(404);
    const more = await shop.post(`${path}/credit-notes`, { items: [{ line: 0, amount: 1 }] });
    expect(more.body).toMatchObject({ error: { code: 'CREDIT_EXCEEDS_INVOICE', details: { line: 0, left: 0 } } });
  });

  test('of one key is one; of many at once none takes back more than there is', async () => {
    const path = `/invoices/${await issued()}`;
    const key = randomUUID();
    const same = await Promise.all(
      Array.from({ length: 10 }, () => shop.post(`${path}/credit-notes`, { items: [{ line: 0, amount: 100 }] }, key)),
    );
    expect(new Set(same.map(({ body }) => body?.['number'])).size).toBe(1);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => shop.post(`${path}/credit-notes`, { items: [{ line: 0, amount: 9_000 }] })),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
    expect((await shop.get(path)).body).toMatchObject({ amountCredited: 27_100, amountDue: 692 });
  });

  test('takes back all that is left by default, with its discounts', async () => {
    const items = [
      { description: 'Tea', amount: 10_000, quantity: 1, taxRate: 15 },
      { description: 'Discount', amount: -500, quantity: 1, taxRate: 15 },
    ];
    const [whole, rest] = [`/invoices/${await issued({ items })}`, `/invoices/${await issued({ items })}`];
    expect((await shop.post(`${whole}/credit-notes`, {})).body).toMatchObject({ total: 10_925, tax: 1_425 });
    expect((await shop.get(whole)).body).toMatchObject({ status: 'paid', amountDue: 0, amountCredited: 10_925 });
    expect((await shop.post(`${rest}/credit-notes`, { items: [{ line: 0, amount: 1_000 }] })).status).toBe(201);
    expect((await shop.post(`${rest}/credit-notes`, {})).body).toMatchObject({ total: 9_925 });
    const none = await shop.post(`${rest}/credit-notes`, {});
    expect(none.body).toMatchObject({ error: { code: 'CREDIT_EXCEEDS_INVOICE', details: { line: null, left: 0 } } });
  });

  test('is refused for drafts, other lines, and more than the whole', async () => {
    const draft = idOf(await shop.post('/invoices', invoice()));
    expect(codeOf(await shop.post(`/invoices/${draft}/credit-notes`, {}))).toBe('CONFLICT');
    const items = [tea, { ...tea, amount: -20_000, description: 'Discount' }];
    const path = `/invoices/${await issued({ items })}/credit-notes`;
    expect(codeOf(await shop.post(path, { items: [{ line: 0 }] }))).toBe('CREDIT_EXCEEDS_INVOICE');
    expect(codeOf(await shop.post(path, { items: [{ line: 9 }] }))).toBe('CREDIT_EXCEEDS_INVOICE');
    expect(faultsOf(await shop.post(path, { items: [{ line: 9 }, { line: 8 }] }))).toEqual([
      'body/items/0',
      'body/items/1',
    ]);
    expect(faultsOf(await shop.post(path, { items: [{ line: 0, amount: 0 }], reason: 'a\nb' }))).toEqual([
      'body/items/0/amount',
      'body/reason',
    ]);
    expect(faultsOf(await shop.post(path, { items: [{ line: 0 }, { line: 0 }] }))).toEqual(['body/items']);
  });
});

test('fifty at a time, some killed and some rolled back, get numbers without a gap (A19)', async () => {
  const drafts = await Promise.all(
    Array.from({ length: 50 }, async () => idOf(await shop.post('/invoices', invoice()))),
  );
  await using client = await connectTo(databaseUrl);
  // Rolled back, with the number taken.
  await client.query(
    `CREATE FUNCTION fail_some() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       IF NEW.id = ANY(TG_ARGV[0]::uuid[]) THEN PERFORM pg_sleep(0.2); RAISE EXCEPTION 'rolled back'; END IF;
       RETURN NEW; END $$`,
  );
  await client.query(
    `CREATE CONSTRAINT TRIGGER fail_some AFTER UPDATE ON invoices DEFERRABLE INITIALLY DEFERRED
     FOR EACH ROW EXECUTE FUNCTION fail_some('{${drafts.slice(0, 5).join(',')}}')`,
  );
  await using replica = await billing.startProcess();
  const doomed = await billing.callerOf('shop', undefined, replica.url);
  const calls = drafts.map((id, index) =>
    (index % 2 === 0 ? doomed : shop).post(`/invoices/${id}/finalize`).then(
      ({ status }) => status,
      () => 0,
    ),
  );
  await sleep(100);
  await replica.kill();
  const statuses = await Promise.all(calls);
  expect(statuses.filter((status) => status !== 200).length).toBeGreaterThan(4);
  await client.query('DROP TRIGGER fail_some ON invoices');
  for (const id of drafts) expect((await shop.post(`/invoices/${id}/finalize`)).status).toBe(200);
  const { rows } = await client.query<{ sequence: string; number: string }>(
    "SELECT sequence, number FROM invoices WHERE series = 'INV' ORDER BY sequence",
  );
  expect(rows.map(({ sequence }) => Number(sequence))).toEqual(rows.map((_row, index) => index + 1));
  expect(rows.map(({ number }) => number)).toEqual(
    rows.map((_row, index) => `INV-${String(index + 1).padStart(6, '0')}`),
  );
});

test('without a seller there are drafts alone', async () => {
  const { url } = stack.use(await createDatabase());
  await using bare = await startBilling({ databaseUrl: url });
  const caller = await bare.callerOf('shop');
  const id = idOf(await caller.post('/customers', { email: 'ann@example.com' }));
  const draft = await caller.post('/invoices', { customerId: id, items: [tea] });
  expect(draft.status).toBe(201);
  expect(codeOf(await caller.post(`/invoices/${idOf(draft)}/finalize`))).toBe('NO_SELLER');
  expect(codeOf(await caller.post('/invoices', { customerId: id, items: [tea], finalize: true }))).toBe('NO_SELLER');
  expect((await caller.get('/invoices')).body).toMatchObject({ total: 1 });
});

async function pdfOf(path: string): Promise<Buffer> {
  const response = await shop.bytes(`${path}/pdf`);
  expect(response.headers.get('content-type')).toBe('application/pdf');
  return Buffer.from(await response.arrayBuffer());
}

/** Of each line. */
function taxesOf(body: Record<string, unknown> | undefined): readonly number[] {
  const { items } = body as { items: { tax: number }[] };
  return items.map(({ tax }) => tax);
}
