import type { IncomingMessage, Server } from 'node:http';

/**
 * Answers `Expect` (RFC 9110, section 10.1.1). A client gets `100 Continue` as soon as somebody
 * begins to read the body of its request, and not before: what the headers decide is answered
 * without it. Node itself would send it at once, and would answer by itself, without a body and
 * past all hooks, what expects anything else.
 *
 * @returns whether a request expects what no server can.
 */
export function followExpectations(server: Server): (request: IncomingMessage) => boolean {
  const unmet = new WeakSet<IncomingMessage>();
  server.on('checkContinue', (request, response) => {
    request.once('resume', () => {
      if (!response.headersSent && !response.destroyed) response.writeContinue();
    });
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (request, response) => {
    unmet.add(request);
    server.emit('request', request, response);
  });
  return (request) => unmet.has(request);
}
