/**
 * What there is to use of `node:http`, other than types. To import from it, or to touch the global `fetch`, `Headers` and so on, loads the copy of undici
 * that is within Node: some 5 MiB of a process that has undici already.
 */
export const {
  IncomingMessage,
  maxHeaderSize,
  METHODS,
  ServerResponse,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} = process.getBuiltinModule('node:http');
