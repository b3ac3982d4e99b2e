import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

// Below what Linux (32768) and macOS (49152) hand out to outgoing connections: a server that is stopped for minutes and
// started again on its port would otherwise find it taken by somebody's connection.
const FIRST_PORT = 20_000;
const END_PORT = 32_000;

/**
 * Finds `count` different TCP ports on which nobody listens at 127.0.0.1. Nothing keeps another process from taking one
 * before the caller does, so a caller must be ready to try again.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  for (let attempt = 0; attempt < 1_000 && ports.size < count; attempt += 1) {
    const port = randomInt(FIRST_PORT, END_PORT);
    if (await isPortFree(port)) ports.add(port);
  }
  if (ports.size < count) throw new Error(`There are no ${count} free ports on 127.0.0.1`);
  return [...ports];
}

/** The preferred port when it is free, else another. */
export async function preferredPort(preferred: number): Promise<number> {
  if (await isPortFree(preferred)) return preferred;
  const [other] = await freePorts(1);
  return other ?? preferred;
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
