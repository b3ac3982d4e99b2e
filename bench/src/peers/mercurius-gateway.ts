// `node mercurius-gateway.ts PORT GATEWAY_PORT PACKAGES JIT NAME=URL ...`: the gateway of mercurius.
// JIT is after how many times a query is compiled, 0 for never. On PORT it reports its CPU time.
// PACKAGES is where it is installed.
import { createRequire } from 'node:module';
import { serveCpu } from './cpu-server.ts';

/** What is used of them. */
interface Server {
  register(plugin: object, options: object): unknown;
  listen(options: object): Promise<unknown>;
}

const [port = '', gatewayPort = '', packages = '', jit = '', ...named] = process.argv.slice(2);
const load = createRequire(`${packages}/package.json`);
const { fastify }: { readonly fastify: () => Server } = load('fastify');
const gateway: object = load('@mercuriusjs/gateway');

const services = named.map((pair) => {
  const [name = '', url = ''] = pair.split('=');
  return { name, url, mandatory: true };
});
const app = fastify();
await app.register(gateway, { jit: Number(jit), gateway: { services } });
await app.listen({ port: Number(gatewayPort), host: '127.0.0.1' });
serveCpu(Number(port));
