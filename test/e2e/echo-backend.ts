import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import { methodDefinition } from '../gateway/grpc-methods.ts';

/** A gRPC service that answers with what it was sent. */
export interface EchoBackend extends AsyncDisposable {
  readonly url: string;
  /** Whoever has called it, as the gateway says. */
  readonly subjects: ReadonlySet<string>;
}

/** @param delayMs before each answer, so that there are calls under way at any time. */
export async function startEchoBackend(delayMs: number): Promise<EchoBackend> {
  const subjects = new Set<string>();
  const server = new Server();
  server.addService(
    { Unary: methodDefinition('Unary') },
    {
      Unary(call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) {
        subjects.add(String(call.metadata.get('x-rollcall-subject')));
        setTimeout(() => callback(null, call.request), delayMs);
      },
    },
  );
  const bound = Promise.withResolvers<number>();
  server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
    error === null ? bound.resolve(port) : bound.reject(error),
  );
  return {
    url: `http://127.0.0.1:${await bound.promise}`,
    subjects,
    [Symbol.asyncDispose]: async () => server.forceShutdown(),
  };
}
