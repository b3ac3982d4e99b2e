import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { renderTemplate } from './domain/templates/templates.ts';
import { compiledFileOf, compileReadyTemplate, loadReadyTemplate, readyTemplates } from './ready-templates.ts';

const company = 'Acacia & Söhne';
const url = 'https://shop.example/a?b=1&c=2';
const items = [{ description: 'Tea <loose>', amount: 'R 100.00' }];
const hostile = '{{7*7}} <mj-include path="/etc/passwd"> <img src=x onerror=alert(1)>';

const cases = [
  { name: 'welcome', variables: { company, url }, text: 'Open your account' },
  { name: 'password-reset', variables: { company, url, validFor: '30 minutes' }, text: 'within 30 minutes' },
  {
    name: 'receipt',
    variables: { company, number: '7', paidOn: '1 May', items, total: 'R 115.00' },
    text: 'Tea <loose>',
  },
  {
    name: 'invoice',
    variables: { company, number: '7', dueOn: '1 May', items, total: 'R 115.00', url },
    text: 'Tea <loose>',
  },
  { name: 'payment-failed', variables: { company, amount: 'R 115.00', url, retryOn: '2 May' }, text: 'again on 2 May' },
] as const;

test('each ready template is tried', () => {
  expect(cases.map(({ name }) => name)).toEqual(readyTemplates);
});

test.each(readyTemplates)('%s is kept as its MJML compiles to (npm run generate)', async (name) => {
  expect(await readFile(compiledFileOf(name), 'utf8')).toBe(await compileReadyTemplate(name));
});

test.each(cases)(
  '$name makes a mail of HTML and text, in which a value is only letters',
  async ({ name, variables, text }) => {
    const { published } = await loadReadyTemplate(name);
    const rendered = renderTemplate(published, { variables: { ...variables, name: hostile } });
    expect(rendered).toHaveProperty('mail');
    if (!('mail' in rendered)) return;
    const { mail } = rendered;
    expect(mail.subject).toContain(company);
    const words = mail.text.replaceAll(/\s+/g, ' ');
    expect(words).toContain(text);
    expect(words).toContain(`Hello ${hostile},`);
    expect(words.startsWith(company)).toBe(true);
    expect(mail.html).toContain('Acacia &amp; Söhne');
    expect(mail.html).not.toContain('<img');
    expect(mail.html).not.toMatch(/<mj-|\{\{ |\{% /);
  },
);

test.each(cases)('$name names what is missing', async ({ name, variables }) => {
  const { published } = await loadReadyTemplate(name);
  const rendered = renderTemplate(published, { variables: {} });
  const faults = Object.keys(variables).filter((variable) => variable !== 'retryOn');
  expect(rendered).toEqual({
    faults: expect.arrayContaining(faults.map((variable) => ({ path: `/${variable}`, message: 'is missing' }))),
  });
});

test('no ready template makes a link of a script', async () => {
  const { published } = await loadReadyTemplate('welcome');
  const rendered = renderTemplate(published, { variables: { company, url: 'javascript:alert(1)' } });
  expect(rendered).toEqual({ faults: [{ path: '/url', message: 'must match format "uri"' }] });
});
