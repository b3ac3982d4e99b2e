import { subscribe } from 'node:diagnostics_channel';

/** Called by undici with each connection, once it has its parser. */
const CONNECTED = 'undici:client:connected';
const CONTINUE = 100;
/** Another interim status, which undici passes over. */
const PROCESSING = 102;

interface Parser {
  onHeadersComplete: (status: number, upgrade: boolean, shouldKeepAlive: boolean) => number;
}

let isAsked = false;

/**
 * Has undici pass over a `100 Continue` that nobody asked for, as a client must (RFC 9110, section
 * 15.2). It treats one as a fault and destroys the connection, though the request was carried out;
 * other interim answers it passes over. It has no setting for that, so its parser is given another
 * one. Holds for the whole process, from the first connection on, and for Node's own copy of undici,
 * by which `fetch` connects: both report their connections on the same channel.
 *
 * Whether it is needed still: take the call out of guarded-agent.ts, and run
 * test/platform/guarded-agent.test.ts.
 */
export function passOverUnexpectedContinue(): void {
  if (isAsked) return;
  isAsked = true;
  const changed = new WeakSet<Parser>();
  subscribe(CONNECTED, (message) => {
    const parser = parserOf(message);
    if (parser === undefined || changed.has(parser)) return;
    changed.add(parser);
    parser.onHeadersComplete = new Proxy(parser.onHeadersComplete, {
      apply: (method, self, [status, ...rest]) =>
        Reflect.apply(method, self, [status === CONTINUE ? PROCESSING : status, ...rest]),
    });
  });
}

/** What all parsers of HTTP/1.1 of one copy of undici inherit from. */
function parserOf(message: unknown): Parser | undefined {
  const socket = isObject(message) ? message['socket'] : undefined;
  if (!isObject(socket)) return undefined;
  const key = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'parser');
  const parser: unknown = key === undefined ? undefined : Object.getPrototypeOf(Reflect.get(socket, key) ?? {});
  return isParser(parser) ? parser : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isParser(value: unknown): value is Parser {
  return isObject(value) && typeof value['onHeadersComplete'] === 'function';
}
