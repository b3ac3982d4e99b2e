import { expect, test } from 'vitest';
import { withUnsubscribeLink } from './unsubscribe.ts';

const url = 'https://x.example/unsubscribe/abc';
const link = `<p><a href="${url}">Unsubscribe</a></p>`;

test.each([
  ['<p>Sale</p>', `<p>Sale</p>${link}`],
  ['<html><BODY>Sale</BODY ></html>', `<html><BODY>Sale${link}</BODY ></html>`],
  [`<a href="${url}">No more</a>`, `<a href="${url}">No more</a>`],
])('the HTML %s has the link once', (html, expected) => {
  expect(withUnsubscribeLink({ text: 'Sale', html }, { url })).toEqual({
    text: `Sale\n\nUnsubscribe: ${url}`,
    html: expected,
  });
});

test('a text that has the link stays', () => {
  expect(withUnsubscribeLink({ text: `No more: ${url}` }, { url })).toEqual({ text: `No more: ${url}` });
});

test.each([
  ['fr-CA', 'Se désabonner'],
  ['pt-BR', 'Cancelar inscrição'],
  ['pt-PT', 'Cancelar subscrição'],
  ['AF', 'Teken uit'],
  ['en-ZA', 'Unsubscribe'],
  ['xx', 'Unsubscribe'],
])('a mail in %s says %s', (locale, words) => {
  expect(withUnsubscribeLink({ text: 'Sale', html: '<p>Sale</p>' }, { url, locale })).toEqual({
    text: `Sale\n\n${words}: ${url}`,
    html: `<p>Sale</p><p><a href="${url}">${words}</a></p>`,
  });
});
