import * as fc from 'fast-check';
import { SegmentedMessage } from 'sms-segments-calculator';
import { expect, test } from 'vitest';
import { segmentsOf } from './segments.ts';

const a = (count: number) => 'a'.repeat(count);
const ê = (count: number) => 'ê'.repeat(count);

test.each([
  ['', 'GSM-7', 1],
  [a(160), 'GSM-7', 1],
  [a(161), 'GSM-7', 2],
  [a(306), 'GSM-7', 2],
  [a(307), 'GSM-7', 3],
  [`${a(158)}€`, 'GSM-7', 1],
  [`${a(159)}€`, 'GSM-7', 2],
  [`${a(152)}€${a(152)}`, 'GSM-7', 3],
  ['Ç é è ä ö ñ', 'GSM-7', 1],
  ['^{}\\[~]|€\f'.repeat(8), 'GSM-7', 1],
  ['^{}\\[~]|€\f'.repeat(9), 'GSM-7', 2],
  [ê(70), 'UCS-2', 1],
  [ê(71), 'UCS-2', 2],
  [ê(134), 'UCS-2', 2],
  [ê(135), 'UCS-2', 3],
  [`${'{|^]'.repeat(15)}${ê(10)}`, 'UCS-2', 1],
  [`${a(66)}😀${a(66)}`, 'UCS-2', 3],
  ['😀'.repeat(70), 'UCS-2', 3],
  ['`', 'UCS-2', 1],
  ['\u001b', 'UCS-2', 1],
])('%j is %s, in %i parts', (text, encoding, count) => {
  const { parts, ...rest } = segmentsOf(text);
  expect(rest).toEqual({ encoding });
  expect(parts).toHaveLength(count);
});

test('a character of many marks counts with each of them', () => {
  expect(segmentsOf(`a${'\u0301'.repeat(200)}`).parts).toHaveLength(3);
});

// It keeps what looks like one character in one part, so only characters of one code point are compared.
const characters = fc.oneof(
  fc.constantFrom(
    ...Array.from('@£$¥èéùìòÇ\nØøÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡AZÄÖÑÜ§¿azäöñüà'),
    ...Array.from('\f^{}\\[~]|€'),
  ),
  fc.constantFrom('ê', '`', '–', '你', '😀'),
);

test.each([
  { what: 'of GSM-7', of: characters.filter((character) => !'ê`–你😀'.includes(character)) },
  { what: 'of any kind', of: characters },
])("parts of texts $what are those of Twilio's calculator, and make up the text", ({ of }) => {
  fc.assert(
    fc.property(fc.array(of, { minLength: 1, maxLength: 500 }), (chosen) => {
      const text = chosen.join('');
      const { encoding, parts } = segmentsOf(text);
      const twilio = new SegmentedMessage(text);
      expect(encoding).toBe(twilio.encodingName);
      expect(parts).toHaveLength(twilio.segmentsCount);
      expect(parts.join('')).toBe(text);
      expect(parts.every((part) => part.isWellFormed())).toBe(true);
    }),
    { numRuns: 300 },
  );
});
