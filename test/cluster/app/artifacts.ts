// An https server of the files in a directory, among them its own certificate.
//
//   DIRECTORY  with server.crt, server.key and what can be fetched
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { basename, join } from 'node:path';

const PORT = 8443;

const directory = process.env['DIRECTORY'] ?? '';
const read = (name: string): Buffer => readFileSync(join(directory, name));

const server = createServer({ cert: read('server.crt'), key: read('server.key') }, (request, response) => {
  try {
    response.end(read(basename(request.url ?? '')));
  } catch {
    response.writeHead(404).end();
  }
});
server.listen(PORT);

process.once('SIGTERM', () => process.exit(0));
