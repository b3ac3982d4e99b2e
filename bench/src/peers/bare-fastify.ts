// `node bare-fastify.ts PORT FILE`: as bare-http.ts, with one route of Fastify.
import { readFileSync } from 'node:fs';
import { fastify } from 'fastify';
import type { Answer } from './answer.ts';

const [port = '', file = ''] = process.argv.slice(2);
const answer: Answer = JSON.parse(readFileSync(file, 'utf8'));
const body = Buffer.from(answer.body);

const app = fastify();
app.get('/cpu', () => {
  const { user, system } = process.cpuUsage();
  return String((user + system) / 1000);
});
app.get('/api/v1/services/:service_name', (_request, reply) => {
  void reply.headers(answer.headers).send(body);
});
await app.listen({ port: Number(port), host: '127.0.0.1' });
