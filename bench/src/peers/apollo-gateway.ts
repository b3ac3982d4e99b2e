// `node apollo-gateway.ts PORT GATEWAY_PORT PACKAGES NAME=URL ...`: Apollo's gateway in its server, as
// its documentation sets it up. On PORT it reports its CPU time. PACKAGES is where it is installed.
import { createRequire } from 'node:module';
import { serveCpu } from './cpu-server.ts';

/** What is used of them. */
interface Gateways {
  readonly ApolloGateway: new (options: { readonly supergraphSdl: object }) => object;
  readonly IntrospectAndCompose: new (options: {
    readonly subgraphs: readonly { readonly name: string; readonly url: string }[];
  }) => object;
}
interface Servers {
  readonly ApolloServer: new (options: { readonly gateway: object }) => object;
}
interface Standalone {
  readonly startStandaloneServer: (server: object, options: { readonly listen: object }) => Promise<unknown>;
}

const [port = '', gatewayPort = '', packages = '', ...named] = process.argv.slice(2);
const load = createRequire(`${packages}/package.json`);
const { ApolloGateway, IntrospectAndCompose }: Gateways = load('@apollo/gateway');
const { ApolloServer }: Servers = load('@apollo/server');
const { startStandaloneServer }: Standalone = load('@apollo/server/standalone');

const subgraphs = named.map((pair) => {
  const [name = '', url = ''] = pair.split('=');
  return { name, url };
});
const gateway = new ApolloGateway({ supergraphSdl: new IntrospectAndCompose({ subgraphs }) });
const listen = { port: Number(gatewayPort), host: '127.0.0.1' };
await startStandaloneServer(new ApolloServer({ gateway }), { listen });
serveCpu(Number(port));
