import type { IncomingMessage, ServerResponse } from 'node:http';
import { responseHeaders } from './headers.ts';

interface Exchanged {
  readonly request: Pick<IncomingMessage, 'httpVersion'>;
  readonly response: ServerResponse;
}

/** 100 and 101 are between two neighbours: the gateway asks no service for either. */
const LAST_OF_NEIGHBOURS = 101;

/**
 * Passes on an answer that comes before the answer, such as 103 Early Hints (RFC 9110, section
 * 15.2). HTTP/1.0 knows none.
 */
export function passOnInformation(
  { request, response }: Exchanged,
  status: number,
  headers: Parameters<typeof responseHeaders>[1],
): void {
  if (status <= LAST_OF_NEIGHBOURS || request.httpVersion === '1.0' || response.headersSent) return;
  const fields = responseHeaders(status, headers, {});
  const lines = fields.flatMap((value, index) => {
    const name = fields[index - 1];
    return index % 2 === 0 || typeof name !== 'string' ? [] : [value].flat().flatMap((each) => [name, each]);
  });
  try {
    response.writeInformation(status, lines);
  } catch {
    // What Node does not send on costs nobody the answer itself.
  }
}
