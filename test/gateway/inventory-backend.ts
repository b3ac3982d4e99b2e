import { fileURLToPath } from 'node:url';
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';
import { serviceDefinition } from '@rollcall/platform/grpc/protocols.ts';
import { createHealth, type Health } from '@rollcall/registry/grpc/health.ts';

export const INVENTORY = 'acme.inventory.v1.Inventory';
const HEALTH = 'grpc.health.v1.Health';
const DIRECTORIES = ['./proto', '../../platform/proto'];

/** A gRPC service with the standard health and reflection of its own. */
export interface InventoryBackend extends AsyncDisposable {
  readonly url: string;
  readonly health: Health;
}

export async function startInventoryBackend(): Promise<InventoryBackend> {
  const protocol = loadSync(['acme/inventory/v1/inventory.proto', 'grpc/health/v1/health.proto'], {
    includeDirs: DIRECTORIES.map((directory) => fileURLToPath(new URL(directory, import.meta.url))),
    enums: String,
    defaults: true,
  });
  const health = createHealth([INVENTORY]);
  const server = new Server();
  server.addService(serviceDefinition(protocol, INVENTORY), {
    Count: (call: ServerUnaryCall<{ article: string }, object>, callback: sendUnaryData<object>) =>
      callback(null, { article: call.request.article, pieces: call.request.article.length }),
  });
  server.addService(serviceDefinition(protocol, HEALTH), health.implementation);
  new ReflectionService(protocol).addToServer(server);
  health.set('SERVING');
  return { ...(await listen(server)), health };
}

/** One that has neither health nor reflection, nor anything else. */
export function startBareBackend(): Promise<Pick<InventoryBackend, 'url'> & AsyncDisposable> {
  return listen(new Server());
}

async function listen(server: Server): Promise<Pick<InventoryBackend, 'url'> & AsyncDisposable> {
  const bound = Promise.withResolvers<number>();
  server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
    error === null ? bound.resolve(port) : bound.reject(error),
  );
  const url = `http://127.0.0.1:${await bound.promise}`;
  return {
    url,
    [Symbol.asyncDispose]: async () => server.forceShutdown(),
  };
}
