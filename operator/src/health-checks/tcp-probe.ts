import { once } from 'node:events';
import { connect } from 'node:net';
import type { Lookups } from '@rollcall/platform/outbound/lookups.ts';
import { bareHost, portOf } from '@rollcall/platform/outbound/url-host.ts';
import type { Probe } from './probe.ts';

/** Connects, and closes the connection. */
export function createTcpProbe({ within }: Pick<Lookups, 'within'>): Probe {
  return async (url, { timeoutSeconds }, signal) => {
    const socket = connect({ host: bareHost(url.hostname), port: portOf(url), lookup: within(timeoutSeconds * 1000) });
    try {
      await once(socket, 'connect', { signal });
      return 'it accepted a connection';
    } finally {
      socket.on('error', () => undefined).destroy();
    }
  };
}
