import { expect, test } from 'vitest';
import { takeLines } from './watch.ts';

test('lines that are split anywhere, even inside a character, come out whole', () => {
  const text = '{"a":"ä€😀"}\n\n{"b":2}\n{"c"';
  const bytes = Buffer.from(text);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const lines: string[] = [];
    let rest: Buffer = Buffer.alloc(0);
    for (const part of [bytes.subarray(0, cut), bytes.subarray(cut)]) {
      rest = takeLines(rest, part, (line) => lines.push(line));
    }
    expect(lines).toEqual(['{"a":"ä€😀"}', '{"b":2}']);
    expect(rest.toString()).toBe('{"c"');
  }
});
