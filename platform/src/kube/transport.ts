import { createSecureContext } from 'node:tls';
import { type Dispatcher, Pool, ProxyAgent } from 'undici';
import type { Credentials, KubeAccess, TlsCredentials } from './access.ts';
import { unreachable } from './errors.ts';

/** Below the 90 s after which the API server closes an idle connection. */
const KEEP_ALIVE_MS = 60_000;
const TCP_KEEP_ALIVE_MS = 10_000;

/** Sockets to one API server that present the same client certificate. */
interface Transport {
  readonly requests: Dispatcher;
  readonly streams: Dispatcher;
}

export interface TransportOptions {
  readonly connectTimeoutMs: number;
  /** Most sockets that requests use at once. */
  readonly maxSockets: number;
}

export interface Transports {
  /**
   * The transport for these credentials, the same one until their certificates change.
   *
   * @throws when closed.
   */
  get(credentials: Credentials): Transport;
  /** Lets requests finish, ends streams. After that there is no transport. */
  close(): Promise<void>;
}

/**
 * Two pools that live as long as the connection. Streams have their own, so that no number of
 * watches leaves requests without a socket. HTTP/1.1 throughout: over HTTP/2 one socket would carry
 * everything, and with it would fall everything.
 */
export function createTransports(access: KubeAccess, options: TransportOptions): Transports {
  const retired = new Map<Transport, Promise<void>>();
  let tls: TlsCredentials | undefined;
  let current: Transport | undefined;
  let closed = false;

  /** Nothing new is sent over it; watches on it go on until the server ends them. */
  function retire(transport: Transport): void {
    const closed = Promise.allSettled([transport.requests.close(), transport.streams.close()]);
    retired.set(
      transport,
      closed.then(() => void retired.delete(transport)),
    );
  }

  return {
    get(credentials) {
      if (closed) throw unreachable('the connection was closed');
      if (current !== undefined && sameTls(tls, credentials.tls)) return current;
      if (current !== undefined) retire(current);
      tls = credentials.tls;
      current = createTransport(access, tls, options);
      return current;
    },
    async close() {
      closed = true;
      if (current !== undefined) retire(current);
      current = undefined;
      await Promise.all([...retired.keys()].map(({ streams }) => streams.destroy()));
      await Promise.all(retired.values());
    },
  };
}

function createTransport(access: KubeAccess, tls: TlsCredentials, options: TransportOptions): Transport {
  const requestOptions = { connections: options.maxSockets, keepAliveTimeout: KEEP_ALIVE_MS, allowH2: false };
  const streamOptions = { allowH2: false };
  const { ca, cert, key, ...verification } = tls;
  const connect = {
    ...verification,
    // Made once: made for every attempt to connect, a process grows by them while the server is
    // unavailable.
    secureContext: createSecureContext({ ca, cert, key }),
    timeout: options.connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
  };
  const proxy = access.proxyUrl;
  if (proxy !== undefined && proxy !== '') {
    return {
      requests: new ProxyAgent({ ...requestOptions, uri: proxy, requestTls: connect }),
      streams: new ProxyAgent({ ...streamOptions, uri: proxy, requestTls: connect }),
    };
  }
  const { origin } = new URL(access.server);
  return {
    requests: new Pool(origin, { ...requestOptions, connect }),
    streams: new Pool(origin, { ...streamOptions, connect }),
  };
}

function sameTls(a: TlsCredentials | undefined, b: TlsCredentials): boolean {
  return a === b || (a?.ca === b.ca && a?.cert === b.cert && a?.key === b.key);
}
