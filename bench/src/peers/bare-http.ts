// `node bare-http.ts PORT FILE`: node:http with nothing around it, answering every request with the
// headers and body that the file holds. `/cpu` answers with the milliseconds of CPU that the
// process has used.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Answer } from './answer.ts';

const [port = '', file = ''] = process.argv.slice(2);
const answer: Answer = JSON.parse(readFileSync(file, 'utf8'));
const body = Buffer.from(answer.body);
const headers = { ...answer.headers, 'content-length': body.length };

createServer((request, response) => {
  if (request.url === '/cpu') {
    const { user, system } = process.cpuUsage();
    response.end(String((user + system) / 1000));
    return;
  }
  response.writeHead(200, headers);
  response.end(body);
}).listen(Number(port), '127.0.0.1');
