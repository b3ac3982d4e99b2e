import { type ClientHttp2Session, connect } from 'node:http2';
import type { LookupFunction, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { always } from '../discovery/addresses.ts';
import { isOfLookup } from '../discovery/lookups.ts';

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
  readonly onUnusable: () => void;
}

/** One HTTP/2 connection to a backend, made or being made. */
export interface UpstreamConnection {
  readonly session: ClientHttp2Session;
  /** Undefined until there is one. */
  readonly socket: Socket | undefined;
  /** Whether the backend has said that it will not have looked at a stream with this id. */
  isBeyondGoaway(streamId: number): boolean;
  /** Whether there is no connection any more, or never was. */
  isLost(): boolean;
  /** Whether there was none because the host name could not be looked up. */
  isUnnamed(): boolean;
}

const TCP_KEEP_ALIVE_MS = 15_000;
const SESSION_MEMORY_MB = 64;
const CONNECTION_WINDOW_BYTES = 1024 * 1024;

/**
 * Connects to an origin. A kernel takes connections for a process that stands still, so a connection is made only when the backend has
 * sent its settings; a call that was sent before might be carried out once the process goes on.
 */
export function dial(origin: string, options: DialOptions): UpstreamConnection {
  const { address, lookup, connectTimeoutMs, windowBytes, maxHeaderBytes, onReady, onUnusable } = options;
  const settings = {
    settings: { enablePush: false, initialWindowSize: windowBytes, maxHeaderListSize: maxHeaderBytes },
    maxSessionMemory: SESSION_MEMORY_MB,
    strictSingleValueFields: false,
    lookup: address === undefined ? lookup : always(address),
  };
  const session = connect(origin, settings);
  let socket: Socket | TLSSocket | undefined;
  let isUnnamed = false;
  let lastStreamId = Number.POSITIVE_INFINITY;
  const overdue = setTimeout(() => {
    session.destroy(new Error('The backend took no connection'));
    // Node tells of it when the socket is closed, which may be minutes later while that is connecting.
    onUnusable();
  }, connectTimeoutMs);
  session.once('connect', (_session, connected) => {
    // Given up meanwhile, which Node does not tell a connection that is being made.
    if (session.destroyed) {
      connected.destroy();
      return;
    }
    socket = connected;
    // A machine that is gone while nothing is on its way to it; the kernel notices without any frame that the backend might object to.
    connected.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
    session.setLocalWindowSize(Math.max(windowBytes * 4, CONNECTION_WINDOW_BYTES));
  });
  session.once('remoteSettings', () => {
    clearTimeout(overdue);
    onReady();
  });
  session.on('goaway', (_code, last) => {
    lastStreamId = last;
    onUnusable();
  });
  // Every call of it hears of the error, too.
  session.on('error', (error) => {
    isUnnamed = isOfLookup(error);
    onUnusable();
  });
  session.on('close', () => {
    clearTimeout(overdue);
    onUnusable();
  });
  return {
    session,
    get socket() {
      return socket;
    },
    isBeyondGoaway: (streamId) => streamId > lastStreamId,
    isLost: () => session.destroyed || socket?.destroyed !== false,
    isUnnamed: () => isUnnamed,
  };
}
