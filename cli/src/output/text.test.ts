import { describe, expect, it } from 'vitest';
import { displayWidth, padTo, printable } from './text.ts';

describe('printable', () => {
  it.each([
    ['shop', 'shop'],
    ['Straße-店-🛒', 'Straße-店-🛒'],
    ['\u001b[31mred\u001b[0m', '\uFFFD[31mred\uFFFD[0m'],
    ['two\r\nlines\u2028', 'two\uFFFD\uFFFDlines\uFFFD'],
    ['abc\u202egnp.exe', 'abc\uFFFDgnp.exe'],
  ])('%j shows as %j', (text, expected) => {
    expect(printable(text)).toBe(expected);
  });
});

describe('displayWidth', () => {
  it.each([
    ['', 0],
    ['shop', 4],
    ['Straße', 6],
    ['e\u0301', 1],
    ['店舗', 4],
    ['🛒', 2],
    ['👩‍🚀', 2],
  ])('%j has %d columns', (text, expected) => {
    expect(displayWidth(text)).toBe(expected);
  });
});

describe('padTo', () => {
  it('counts columns, not characters', () => {
    expect([padTo('店', 4), padTo('ab', 4), padTo('abcde', 4)]).toEqual(['店  ', 'ab  ', 'abcde']);
  });
});
