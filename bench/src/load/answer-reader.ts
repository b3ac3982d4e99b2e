const HEAD_END = Buffer.from('\r\n\r\n');

/** Reads answers of HTTP/1.1 from what a socket delivers, in whatever pieces. */
export interface AnswerReader {
  /**
   * @param chunk valid during the call only.
   * @returns the status of the answer when this chunk completes one.
   * @throws when it is no answer, has no length, or more comes than that.
   */
  read(chunk: Buffer): number | undefined;
}

/** Reads the status and Content-Length only; the body is counted, not kept. */
export function createAnswerReader(): AnswerReader {
  /** What has come of a head that is not complete. */
  let partialHead: Buffer | undefined;
  let status = 0;
  let bytesLeft = 0;

  function readHead(chunk: Buffer): boolean {
    const data = partialHead === undefined ? chunk : Buffer.concat([partialHead, chunk]);
    const end = data.indexOf(HEAD_END);
    if (end === -1) {
      partialHead = Buffer.from(data);
      return false;
    }
    partialHead = undefined;
    const head = data.toString('latin1', 0, end);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    status = Number(head.slice(9, 12));
    if (!head.startsWith('HTTP/1.1 ') || Number.isNaN(status) || length === undefined) {
      throw new Error('The server sent no answer of HTTP/1.1 with a length');
    }
    bytesLeft = Number(length) - (data.length - end - HEAD_END.length);
    return true;
  }

  return {
    read(chunk) {
      if (bytesLeft > 0) bytesLeft -= chunk.length;
      else if (!readHead(chunk)) return undefined;
      if (bytesLeft < 0) throw new Error('The server sent more than its Content-Length');
      return bytesLeft === 0 ? status : undefined;
    },
  };
}
