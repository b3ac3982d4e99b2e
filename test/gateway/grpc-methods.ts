import type { MethodDefinition } from '@grpc/grpc-js';

const asItIs = (bytes: Buffer): Buffer => bytes;

type Method = 'Unary' | 'ClientStream' | 'ServerStream' | 'Bidi' | 'Stats';

/** A method of the tests' gRPC service: its messages are bytes. */
export function methodDefinition(method: Method): MethodDefinition<Buffer, Buffer> {
  return {
    path: `/rollcall.test.v1.Echo/${method}`,
    requestStream: method === 'ClientStream' || method === 'Bidi',
    responseStream: method === 'ServerStream' || method === 'Bidi',
    requestSerialize: asItIs,
    requestDeserialize: asItIs,
    responseSerialize: asItIs,
    responseDeserialize: asItIs,
  };
}
