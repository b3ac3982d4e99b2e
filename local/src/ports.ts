import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

// Below what Linux (32768) and macOS (49152) hand out to outgoing connections: a server that is
// stopped for minutes and started again on its port would otherwise find it used by somebody's
// connection.
const FIRST_PORT = 20_000;
const END_PORT = 32_000;

/** Long enough for a process to be started, after others, and to listen on its port. */
const RESERVED_MS = 120_000;

/**
 * Finds `count` different TCP ports on which nobody listens at 127.0.0.1, and which no other call,
 * of whatever process, gets within the next two minutes. A program that does not ask here may still
 * bind one before the caller does.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  for (let attempt = 0; attempt < 1_000 && ports.size < count; attempt += 1) {
    const port = randomInt(FIRST_PORT, END_PORT);
    if ((await reserve(port)) && (await isPortFree(port))) ports.add(port);
  }
  if (ports.size < count) throw new Error(`There are no ${count} free ports on 127.0.0.1`);
  return [...ports];
}

/** As {@link freePorts}, one. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

/**
 * A UDP port of the same number says to all processes, in the network namespace to which the port
 * belongs, that it is reserved; it goes with this process, however that ends.
 */
async function reserve(port: number): Promise<boolean> {
  const reservation = createSocket('udp4');
  try {
    reservation.bind({ port, address: '127.0.0.1', exclusive: true });
    await once(reservation, 'listening');
  } catch {
    reservation.close();
    return false;
  }
  reservation.unref();
  setTimeout(() => reservation.close(), RESERVED_MS).unref();
  return true;
}

/** The preferred port when it is free, else another. */
export async function preferredPort(preferred: number): Promise<number> {
  return (await isPortFree(preferred)) ? preferred : freePort();
}

/** Whether 127.0.0.1 can be listened on at that port. */
export async function isPortFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ port, host: '127.0.0.1', exclusive: true });
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}
