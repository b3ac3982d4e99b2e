import { describe, expect, it } from 'vitest';
import { createAnswerReader } from './answer-reader.ts';

const answer = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello');

describe('createAnswerReader', () => {
  it.each(Array.from({ length: answer.length - 1 }, (_, index) => index + 1))(
    'reads an answer cut at byte %i',
    (cut) => {
      const reader = createAnswerReader();
      expect(reader.read(answer.subarray(0, cut))).toBeUndefined();
      expect(reader.read(answer.subarray(cut))).toBe(200);
    },
  );

  it('reads one answer after another, without bodies too', () => {
    const reader = createAnswerReader();
    expect(reader.read(answer)).toBe(200);
    expect(reader.read(Buffer.from('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n'))).toBe(404);
    expect(reader.read(answer)).toBe(200);
  });

  it('does not keep the chunk', () => {
    const reader = createAnswerReader();
    const chunk = Buffer.from(answer.subarray(0, 20));
    reader.read(chunk);
    chunk.fill(0);
    expect(reader.read(answer.subarray(20))).toBe(200);
  });

  it('refuses what it cannot count', () => {
    expect(() => createAnswerReader().read(Buffer.from('HTTP/1.1 200 OK\r\n\r\n'))).toThrow('length');
    expect(() => createAnswerReader().read(Buffer.from('SSH-2.0\r\n\r\n'))).toThrow('HTTP/1.1');
    expect(() => createAnswerReader().read(Buffer.concat([answer, Buffer.from('!')]))).toThrow('more');
  });
});
