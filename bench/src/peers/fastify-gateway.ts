// `node fastify-gateway.ts PORT UPSTREAM JWKS`: what one makes of Fastify's own plugins: token
// check, limit per client, proxy.
import httpProxy from '@fastify/http-proxy';
import rateLimit from '@fastify/rate-limit';
import { fastify } from 'fastify';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const [port = '', upstream = '', jwks = ''] = process.argv.slice(2);
const keySet = createRemoteJWKSet(new URL(jwks));
const subjects = new WeakMap<object, string>();

const app = fastify();
app.get('/cpu', () => {
  const { user, system } = process.cpuUsage();
  return String((user + system) / 1000);
});
await app.register(async (scope) => {
  scope.addHook('onRequest', async (request) => {
    const token = request.headers.authorization?.slice('Bearer '.length) ?? '';
    const { payload } = await jwtVerify(token, keySet, { issuer: 'rollcall', audience: 'rollcall' });
    subjects.set(request.raw, payload.sub ?? '');
  });
  await scope.register(rateLimit, {
    max: 1_000_000,
    timeWindow: 60_000,
    keyGenerator: (request) => subjects.get(request.raw) ?? '',
  });
  await scope.register(httpProxy, { upstream, prefix: '/api/v1/upstream', rewritePrefix: '/api/v1' });
});
await app.listen({ port: Number(port), host: '127.0.0.1' });
