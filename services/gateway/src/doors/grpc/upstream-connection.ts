import { connect as connectPlain, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ClientConnection } from '../../http2/client-connection.ts';
import { always } from '../../upstream/discovery/addresses.ts';
import { isOfLookup } from '../../upstream/discovery/lookups.ts';

interface DialOptions {
  /** Of the origin's host, to connect to; undefined: whichever takes the connection. */
  readonly address: string | undefined;
  /** For where there is none. */
  readonly lookup: LookupFunction;
  /** For the connection, and the settings that a backend speaks first. */
  readonly connectTimeoutMs: number;
  /** How much of an answer may be on its way before somebody reads it. */
  readonly windowBytes: number;
  readonly maxHeaderBytes: number;
  /** The backend has spoken: it takes calls. */
  readonly onReady: () => void;
  /** The connection takes no new calls any more: it is broken, closed, or told to go. It may be told more than once. */
  readonly onUnusable: (error?: Error) => void;
}

/** One HTTP/2 connection to a backend, made or being made. */
export interface UpstreamConnection {
  readonly socket: Socket;
  /** Undefined until the socket is connected. */
  readonly http2: ClientConnection | undefined;
  /** Whether there was none because the host name could not be looked up. */
  isUnnamed(): boolean;
  destroy(): void;
}

const TCP_KEEP_ALIVE_MS = 15_000;
const CONNECTION_WINDOW_BYTES = 1024 * 1024;

/**
 * Connects to an origin. A kernel takes connections for a process that stands still, so a connection is made only when the backend has
 * sent its settings; a call that was sent before might be carried out once the process goes on.
 */
export function dial(origin: string, options: DialOptions): UpstreamConnection {
  const { address, lookup, connectTimeoutMs, windowBytes, maxHeaderBytes, onReady, onUnusable } = options;
  const { socket, connectedEvent } = open(new URL(origin), address === undefined ? lookup : always(address));
  let http2: ClientConnection | undefined;
  let isUnnamed = false;
  const overdue = setTimeout(() => destroy(), connectTimeoutMs);
  socket.once(connectedEvent, () => {
    // A machine that is gone while nothing is on its way to it; the kernel notices without any frame that the backend might object to.
    socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
    const connectionWindowBytes = Math.max(windowBytes * 4, CONNECTION_WINDOW_BYTES);
    http2 = new ClientConnection(
      socket,
      { windowBytes, connectionWindowBytes, maxHeaderBytes },
      {
        onReady() {
          clearTimeout(overdue);
          onReady();
        },
        onUnusable,
      },
    );
  });
  socket.on('error', (error) => {
    isUnnamed = isOfLookup(error);
    onUnusable();
  });
  socket.on('close', () => {
    clearTimeout(overdue);
    onUnusable();
  });

  function destroy(): void {
    socket.destroy();
    http2?.destroy();
    // The socket tells of it later.
    onUnusable();
  }

  return {
    socket,
    get http2() {
      return http2;
    },
    isUnnamed: () => isUnnamed,
    destroy,
  };
}

/** @returns a socket and what it emits once it can be used. */
function open(
  { protocol, hostname, port }: URL,
  lookup: LookupFunction,
): { socket: Socket; connectedEvent: 'connect' | 'secureConnect' } {
  const host = hostname.replaceAll(/^\[|\]$/g, '');
  if (protocol !== 'https:') {
    return { socket: connectPlain({ host, port: Number(port || 80), lookup }), connectedEvent: 'connect' };
  }
  const servername = isIP(host) > 0 ? {} : { servername: host };
  const options = { host, port: Number(port || 443), lookup, ALPNProtocols: ['h2'], ...servername };
  return { socket: connectTls(options), connectedEvent: 'secureConnect' };
}
