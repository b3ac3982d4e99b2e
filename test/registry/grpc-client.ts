import {
  Client,
  type ClientReadableStream,
  credentials,
  Metadata,
  type MethodDefinition,
  type ServiceError,
  type StatusObject,
} from '@grpc/grpc-js';
import { serviceDefinition } from '@rollcall/platform/grpc/protocols.ts';
import { loadProtocol } from '@rollcall/registry/grpc/protocol.ts';

/** What a call was answered with. */
interface GrpcAnswer {
  /** Undefined where it failed. */
  readonly message: Record<string, unknown> | undefined;
  readonly code: number;
  readonly details: string;
  readonly trailers: Metadata;
}

/** A real gRPC client of the registry. */
export interface GrpcClient extends Disposable {
  /** @param method of rollcall.registry.v1.Registry, or in full: `grpc.health.v1.Health/Check`. */
  call(method: string, request: object, options?: { readonly deadline?: number }): Promise<GrpcAnswer>;
  open(method: string, request: object): GrpcStream;
  readonly client: Client;
}

/** An open stream of answers. */
export interface GrpcStream extends Disposable {
  /** The next message. @throws with the status when the stream has ended. */
  next(): Promise<Record<string, unknown>>;
  readonly ended: Promise<StatusObject>;
}

const protocol = loadProtocol();

function definitionOf(method: string): MethodDefinition<object, Record<string, unknown>> {
  const [name = '', service = 'rollcall.registry.v1.Registry'] = method.split('/').toReversed();
  const definition = serviceDefinition(protocol, service)[name];
  if (definition === undefined) throw new Error(`There is no method ${method}`);
  return definition as unknown as MethodDefinition<object, Record<string, unknown>>;
}

/** Metadata by name. */
type Entries = Readonly<Record<string, string>>;

export function createGrpcClient(port: number, token?: string, entries?: Entries): GrpcClient {
  return connectGrpc(`127.0.0.1:${port}`, token, entries);
}

/**
 * @param address `<host>:<port>`.
 * @param entries go with every call.
 */
export function connectGrpc(address: string, token?: string, entries: Entries = {}): GrpcClient {
  const client = new Client(address, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  const metadata = new Metadata();
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`);
  for (const [name, value] of Object.entries(entries)) metadata.set(name, value);

  return {
    client,
    call(method, request, options = {}) {
      const { path, requestSerialize, responseDeserialize } = definitionOf(method);
      const { promise, resolve } = Promise.withResolvers<GrpcAnswer>();
      const done = (error: ServiceError | null, message?: Record<string, unknown>) =>
        resolve({
          message,
          code: error?.code ?? 0,
          details: error?.details ?? '',
          trailers: error?.metadata ?? new Metadata(),
        });
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, options, done);
      return promise;
    },
    open(method, request) {
      const { path, requestSerialize, responseDeserialize } = definitionOf(method);
      const call: ClientReadableStream<Record<string, unknown>> = client.makeServerStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        metadata,
      );
      const ended = new Promise<StatusObject>((resolve) => {
        call.on('status', resolve);
      });
      const messages = call[Symbol.asyncIterator]() as AsyncIterator<Record<string, unknown>>;
      return {
        ended,
        async next() {
          const { done, value } = await messages.next();
          if (done === true) throw new Error('The stream has ended');
          return value;
        },
        [Symbol.dispose]() {
          call.on('error', () => undefined);
          call.cancel();
        },
      };
    },
    [Symbol.dispose]: () => client.close(),
  };
}
