import { expect, test } from 'vitest';
import {
  plainTextOf,
  publishTemplate,
  renderTemplate,
  type TemplateDefinition,
  type TemplateSource,
} from './templates.ts';
import type { VariablesSchema } from './variables.ts';
import { TooLongError } from './within-time.ts';

const mjml = (text: string) =>
  `<mjml><mj-body><mj-section><mj-column><mj-text>${text}</mj-text></mj-column></mj-section></mj-body></mjml>`;

function of(source: Partial<TemplateSource>, variables?: VariablesSchema): TemplateDefinition {
  const locales = { en: { subject: 'Hello', ...source } };
  return { locales, defaultLocale: 'en', ...(variables !== undefined && { variables }) };
}

async function preview(definition: TemplateDefinition, variables: Readonly<Record<string, unknown>>, locale = 'en') {
  const published = await publishTemplate(definition);
  return 'template' in published ? renderTemplate(published.template, { variables, locale }) : published;
}

async function mailOf(definition: TemplateDefinition, variables: Readonly<Record<string, unknown>>, locale = 'en') {
  const rendered = await preview(definition, variables, locale);
  if ('mail' in rendered) return rendered.mail;
  throw new Error(JSON.stringify(rendered));
}

test.each([
  '{{7*7}}',
  '{% for a in b %}',
  '<mj-include path="/etc/passwd" />',
  '<mj-text>x</mj-text>',
  '<img src=x onerror=alert(1)>',
  '</div><script>alert(1)</script>',
  `"'&<>`,
])('a value of %j arrives as these letters', async (value) => {
  const { html, text, subject } = await mailOf(of({ subject: '{{ name }}', mjml: mjml('[{{ name }}]') }), {
    name: value,
  });
  expect(text).toBe(`[${value}]`);
  expect(subject).toBe(value);
  expect(html).not.toMatch(/<(?:img|script|mj-)/);
});

test('a value cannot end the header that it stands in', async () => {
  const { subject } = await mailOf(of({ subject: 'Hi {{ name }}', text: 'x' }), {
    name: 'a\r\nBcc: evil@y.example\u0000\u2028b',
  });
  expect(subject).toBe('Hi a Bcc: evil@y.example b');
});

test('a filter that cuts through an emoji leaves no half of it', async () => {
  const source = of({ subject: `{{ name | split: '' | first }}`, html: `<p>{{ name | split: '' | last }}</p>` });
  const mail = await mailOf(source, { name: '👋👋👋👋' });
  for (const text of [mail.subject, mail.html, mail.text]) expect(text?.isWellFormed()).toBe(true);
  expect(mail.subject).toBe('\uFFFD');
});

test('a subject has at most 255 characters', async () => {
  const { subject } = await mailOf(of({ subject: '{{ name }}', text: 'x' }), { name: '😀'.repeat(300) });
  expect(Array.from(subject)).toHaveLength(255);
});

test('text is made of HTML where there is none, and taken where there is', async () => {
  const html =
    '<h1>Title</h1><p>One <a href="https://x.example/">link</a></p><img src="https://x.example/a.png" alt="">';
  expect((await mailOf(of({ html }), {})).text).toBe('Title\n\nOne link <https://x.example/>');
  expect((await mailOf(of({ html, text: 'a < b & {{ c }}' }), { c: '<c>' })).text).toBe('a < b & <c>');
  expect(await mailOf(of({ text: 'plain' }), {})).toEqual({ locale: 'en', subject: 'Hello', text: 'plain' });
});

test('each row of a table has a line of the text', async () => {
  const html = '<table><tr><td>Tea</td> <td>R 100.00</td></tr><tr><td>Paid</td> <td>R 115.00</td></tr></table>';
  expect((await mailOf(of({ html }), {})).text).toBe('Tea R 100.00\nPaid R 115.00');
});

test.each([
  { asked: 'en', locale: 'en' },
  { asked: 'en-GB', locale: 'en' },
  { asked: 'EN-za-x-a', locale: 'en-ZA' },
  { asked: 'af-ZA', locale: 'af' },
  { asked: 'fr', locale: 'en' },
  { asked: '', locale: 'en' },
])('who asks for $asked gets $locale', async ({ asked, locale }) => {
  const subject = 'x';
  const locales = { en: { subject, text: 'a' }, 'en-ZA': { subject, text: 'b' }, af: { subject, text: 'c' } };
  expect((await mailOf({ locales, defaultLocale: 'en' }, {}, asked)).locale).toBe(locale);
});

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    note: { type: 'string' },
    at: { type: 'string', format: 'date' },
    items: {
      type: 'array',
      items: { type: 'object', required: ['amount'], properties: { amount: { type: 'integer' } } },
    },
  },
  required: ['name', 'items'],
  additionalProperties: false,
};
const source = {
  text: '{{ name }}{% if note %} ({{ note }}){% endif %}{% for item in items %} {{ item.amount }}{% endfor %} {{ at }}',
};

test('all variables that are missing or wrong are named at once', async () => {
  expect(
    await preview(of(source, schema), { items: [{ amount: 1 }, { amount: 'x' }, {}], nmae: 'x', at: '2026-02-30' }),
  ).toEqual({
    faults: expect.toSatisfy((faults: readonly { path: string }[]) => {
      expect(faults.map(({ path }) => path).sort()).toEqual([
        '/at',
        '/items/1/amount',
        '/items/2/amount',
        '/name',
        '/nmae',
      ]);
      return true;
    }),
  });
});

test('an optional variable may be left out where it is asked for by if, and is named elsewhere', async () => {
  const items = [{ amount: 1 }];
  expect((await mailOf(of(source, schema), { name: 'Ana', items, at: '2026-11-27' })).text).toBe('Ana 1 2026-11-27');
  expect(await preview(of(source, schema), { name: 'Ana', items })).toEqual({
    faults: [{ path: '/at', message: 'is missing' }],
  });
});

test('without a schema every variable is required', async () => {
  expect(await preview(of({ subject: '{{ a }}', text: '{% for x in b %}{{ x.c }}{% endfor %}' }), {})).toEqual({
    faults: [
      { path: '/a', message: 'is missing' },
      { path: '/b', message: 'is missing' },
    ],
  });
});

test('faults of MJML say where they are in the source, and nothing of this process', async () => {
  const definition = of({ mjml: mjml('x').replace('<mj-body>', '<mj-body>\n<mj-x/><mj-y/>') });
  const published = await publishTemplate(definition);
  const [fault] = 'faults' in published ? published.faults : [];
  expect(fault?.message).toMatch(/^Line 2 \(mj-x\) — .+\n.*Line 2 \(mj-y\) — .+$/);
});

test.each([
  { what: 'nothing to send', definition: of({}), at: '/locales/en' },
  { what: 'MJML and HTML', definition: of({ mjml: mjml('x'), html: 'x' }), at: '/locales/en/html' },
  {
    what: 'an include',
    definition: of({ mjml: mjml('x').replace('<mj-body>', '<mj-body><mj-include path="x" />') }),
    at: '/locales/en/mjml',
  },
  { what: 'no MJML', definition: of({ mjml: 'x' }), at: '/locales/en/mjml' },
  { what: 'unknown MJML', definition: of({ mjml: mjml('x').replaceAll('mj-text', 'mj-txt') }), at: '/locales/en/mjml' },
  { what: 'an output that does not end', definition: of({ subject: '{{ a', text: 'x' }), at: '/locales/en/subject' },
  { what: 'a tag that reads files', definition: of({ html: '{% render "x" %}' }), at: '/locales/en/html' },
  { what: 'a tag that does not escape', definition: of({ html: '{% echo x %}' }), at: '/locales/en/html' },
  { what: 'a filter that does not escape', definition: of({ html: '{{ x | raw }}' }), at: '/locales/en/html' },
  { what: 'a source that is too long', definition: of({ text: 'x'.repeat(262_145) }), at: '/locales/en/text' },
  { what: 'no default', definition: { ...of({ text: 'x' }), defaultLocale: 'de' }, at: '/defaultLocale' },
  {
    what: 'no language',
    definition: {
      ...of({ text: 'x' }),
      locales: { en: { subject: 'x', text: 'x' }, '../x': { subject: 'x', text: 'x' } },
    },
    at: '/locales/../x',
  },
  { what: 'a variable that is not declared', definition: of({ text: '{{ nmae }}' }, schema), at: '/locales/en' },
  { what: 'a schema of a list', definition: of({ text: 'x' }, { type: 'array' }), at: '/variables/type' },
  {
    what: 'a schema that is none',
    definition: of({ text: 'x' }, { type: 'object', required: 'x' }),
    at: '/variables/required',
  },
  {
    what: 'a schema with an expression',
    definition: of({ text: 'x' }, { type: 'object', properties: { a: { pattern: '(a+)+$' } } }),
    at: '/variables',
  },
  {
    what: 'a schema that refers to itself',
    definition: of({ text: 'x' }, { type: 'object', properties: { a: { $ref: '#' } } }),
    at: '/variables',
  },
])('a template with $what is not published', async ({ definition, at }) => {
  expect(await publishTemplate(definition)).toEqual({ faults: [{ path: at, message: expect.stringMatching(/./) }] });
});

test.each(['{{ x.constructor }}', '{{ x.__proto__ }}', '{{ x.toString }}'])('%s leads nowhere', async (text) => {
  expect(await preview(of({ text }), { x: {} })).toEqual({
    faults: [{ path: expect.stringContaining('/x/'), message: 'is missing' }],
  });
});

test.each([
  '{% for a in (1..100000000) %}x{% endfor %}',
  '{% for a in (1..20000) %}{% for b in (1..20000) %}{% assign c = b %}{% endfor %}{% endfor %}',
  '{% assign a = "xxxxxxxxxx" %}{% for b in (1..30) %}{% assign a = a | append: a %}{% endfor %}',
])('rendering %s ends with a fault, soon', async (text) => {
  const startedMs = performance.now();
  expect(await preview(of({ text }), {})).toEqual({
    faults: [{ path: '', message: expect.stringMatching(/limit exceeded|takes longer than/) }],
  });
  expect(performance.now() - startedMs).toBeLessThan(30_000);
});

test('HTML of very many elements within elements is read as far as it makes sense, and not for long', () => {
  const depth = 5000;
  expect(plainTextOf(`${'<b>'.repeat(depth)}deep${'</b>'.repeat(depth)}`)).toBe('…');
  const startedMs = performance.now();
  expect(() => plainTextOf('<b>'.repeat(300_000))).toThrow(TooLongError);
  expect(performance.now() - startedMs).toBeLessThan(30_000);
  expect(plainTextOf('<div><p>Hello</p></div>')).toBe('Hello');
});

test('a template of very many variables is refused, soon', async () => {
  const startedMs = performance.now();
  const text = '{{ a }}'.repeat(35_000);
  const mjml = `<mjml><mj-body><mj-section><mj-column><mj-text>${text}</mj-text></mj-column></mj-section></mj-body></mjml>`;
  expect(await publishTemplate(of({ mjml }))).toEqual({
    faults: [{ path: '/locales/en/mjml', message: expect.stringContaining('takes longer than') }],
  });
  expect(performance.now() - startedMs).toBeLessThan(45_000);
});

test('a schema cannot ask to compare each item with all others', async () => {
  const variables = { type: 'object', properties: { a: { type: 'array', uniqueItems: true } } };
  expect(await publishTemplate(of({ text: '{{ a }}' }, variables))).toMatchObject({ faults: expect.any(Array) });
});

test('of very many faults of values some are named', async () => {
  const variables = { type: 'object', properties: { a: { type: 'array', items: { type: 'string' } } } };
  const rendered = await preview(of({ text: '{{ a }}' }, variables), { a: Array.from({ length: 10_000 }, () => 1) });
  expect('faults' in rendered && rendered.faults).toHaveLength(100);
});

test.each([
  ['an object', { a: 1 }],
  ['a list', ['x']],
  ['null', null],
])('%s is not printed as if it were text', async (_what, name) => {
  const message = 'must be a text or a number where it is printed';
  for (const subject of ['Hello {{ name }}', 'Hello {{name}}']) {
    expect(await preview(of({ subject, html: 'x' }), { name })).toEqual({ faults: [{ path: '/name', message }] });
  }
  expect(await preview(of({ html: '<p>{{ name }}</p>' }), { name })).toMatchObject({ faults: [{ message }] });
});

test('no filter makes a text of an object', async () => {
  const faults = [expect.objectContaining({ path: '/name' })];
  expect(await preview(of({ text: '{{ name | upcase }}' }), { name: { a: 1 } })).toEqual({ faults });
  expect(
    (await mailOf(of({ text: '{{ name | json }} {{ list | join: ", " }}' }), { name: { a: 1 }, list: [1, 2] })).text,
  ).toBe('{"a":1} 1, 2');
});

test('the link to unsubscribe is given by the service alone, and to marketing mails alone', async () => {
  const { template } = (await publishTemplate(of({ text: 'Stop: {{ unsubscribeUrl }}' }, { type: 'object' }))) as {
    template: Parameters<typeof renderTemplate>[0];
  };
  const unsubscribeUrl = 'https://x.example/u';
  expect(renderTemplate(template, { variables: {}, unsubscribeUrl })).toMatchObject({
    mail: { text: `Stop: ${unsubscribeUrl}` },
  });
  expect(renderTemplate(template, { variables: {} })).toEqual({
    faults: [{ path: '/unsubscribeUrl', message: expect.stringContaining('marketing') }],
  });
  expect(renderTemplate(template, { variables: { unsubscribeUrl } })).toEqual({
    faults: [{ path: '/unsubscribeUrl', message: expect.stringContaining('reserved') }],
  });
  expect(
    await publishTemplate(of({ text: 'x' }, { type: 'object', properties: { unsubscribeUrl: {} } })),
  ).toMatchObject({ faults: [{ path: '/variables/properties/unsubscribeUrl' }] });
});
