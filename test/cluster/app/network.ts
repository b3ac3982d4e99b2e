// Who reaches whom. Listens on PORTS; or, with arguments `host:port`, prints in JSON which of them
// accept a connection.
import { connect, createServer } from 'node:net';

/** Filters drop what they do not allow; an answer from the same cluster takes milliseconds. */
const TIMEOUT_MS = 3000;

const targets = process.argv.slice(2);
if (targets.length === 0) {
  for (const port of (process.env['PORTS'] ?? '').split(',')) {
    createServer((socket) => socket.on('error', () => undefined).end()).listen(Number(port));
  }
  process.once('SIGTERM', () => process.exit(0));
} else {
  const answers = await Promise.all(targets.map(accepts));
  console.log(JSON.stringify(targets.filter((_, index) => answers[index])));
  process.exit(0);
}

function accepts(target: string): Promise<boolean> {
  const colon = target.lastIndexOf(':');
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: target.slice(0, colon), port: Number(target.slice(colon + 1)) });
  socket.once('connect', () => resolve(true));
  socket.once('error', () => resolve(false));
  // Includes the time for the name to be found.
  setTimeout(() => resolve(false), TIMEOUT_MS);
  return promise;
}
