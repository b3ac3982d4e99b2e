// A program that registers itself with Rollcall and stays registered as long as it runs. Ready once it is registered. Answers every
// request with its name and the path that was asked for; one for `instance` with the name of its pod.
//
//   SERVERS  base URLs of the registry, separated by commas
//   NAME     of the service
//   URL      where the service can be reached
import { createServer } from 'node:http';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { register } from '@rollcall/client/registration.ts';

const PORT = 8080;
/** It serves on for so long after it is gone from the registry: gateways hear of it a moment later. */
const LEAVE_MS = 3000;

const name = process.env['NAME'] ?? '';
const registration = register({
  servers: (process.env['SERVERS'] ?? '').split(','),
  name,
  url: process.env['URL'] ?? '',
});
registration.on('lost', ({ reason }) => console.error('lost', reason));
registration.on('error', ({ error, retryInMs }) => console.error(error, retryInMs));

const server = createServer((request, response) => {
  const { url = '' } = request;
  response.writeHead(url === '/ready' && registration.state() !== 'registered' ? 503 : 200);
  response.end(url.endsWith('/instance') ? hostname() : `${name} ${url}`);
}).listen(PORT);

process.once('SIGTERM', () => void leave());

async function leave(): Promise<void> {
  const code = await registration.unregister().then(
    () => 0,
    () => 1,
  );
  await delay(LEAVE_MS);
  server.close(() => process.exit(code));
}
