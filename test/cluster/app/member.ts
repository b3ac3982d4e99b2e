// A program that registers itself with Rollcall and stays registered as long as it runs. Ready once it is registered. Answers every
// request with its name and the path that was asked for.
//
//   SERVERS  base URLs of the registry, separated by commas
//   NAME     of the service
//   URL      where the service can be reached
import { createServer } from 'node:http';
import { register } from '@rollcall/client/registration.ts';

const PORT = 8080;

const name = process.env['NAME'] ?? '';
const registration = register({
  servers: (process.env['SERVERS'] ?? '').split(','),
  name,
  url: process.env['URL'] ?? '',
});
registration.on('lost', ({ reason }) => console.error('lost', reason));
registration.on('error', ({ error, retryInMs }) => console.error(error, retryInMs));

createServer((request, response) => {
  response.writeHead(registration.state() === 'registered' ? 200 : 503).end(`${name} ${request.url}`);
}).listen(PORT);

process.once('SIGTERM', () => {
  void registration.unregister().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
