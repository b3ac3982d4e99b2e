import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { csvRecord, inert } from './csv.ts';

/** Reads records as RFC 4180 defines them. */
function parseCsv(text: string): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  let position = 0;
  while (position < text.length) {
    const quoted = text[position] === '"';
    const match = quoted ? /"((?:[^"]|"")*)"(,|\r\n)/y : /([^",\r\n]*)(,|\r\n)/y;
    match.lastIndex = position;
    const found = match.exec(text);
    if (found === null) throw new Error(`not CSV at ${position}: ${text}`);
    const [whole, value = '', end] = found;
    record.push(quoted ? value.replaceAll('""', '"') : value);
    position += whole.length;
    if (end !== ',') {
      records.push(record);
      record = [];
    }
  }
  return records;
}

test('what is written is read back, but for what begins like a formula', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('=1+1', '@x', '-1', '+1', 'a,b', '"', '\r\n', ''),
  );
  const record = fc.array(fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true })), {
    minLength: 1,
    maxLength: 8,
  });
  fc.assert(
    fc.property(fc.array(record, { minLength: 1, maxLength: 5 }), (records) => {
      const read = parseCsv(records.map(csvRecord).join(''));
      expect(read).toEqual(records.map((fields) => fields.map((f) => (typeof f === 'number' ? String(f) : inert(f)))));
    }),
  );
});

test.each([
  [['shop', '1.0.0', 12.5], 'shop,1.0.0,12.5\r\n'],
  [['a,b', 'say "hi"', 'two\nlines'], '"a,b","say ""hi""","two\nlines"\r\n'],
  [['', ''], ',\r\n'],
  [['=HYPERLINK("http://x")'], '"\'=HYPERLINK(""http://x"")"\r\n'],
  [['@SUM(1)', '+1', '-1', '\t=1'], "'@SUM(1),'+1,'-1,'\t=1\r\n"],
  [[-1], '-1\r\n'],
])('%j is written as %j', (fields, expected) => {
  expect(csvRecord(fields)).toBe(expected);
});
