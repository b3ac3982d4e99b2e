// `node grpc-backend.ts PORT GRPC_PORT`: a gRPC server by grpc-js that sends unary messages back.
// On PORT it reports its CPU time.
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import { serveCpu } from './cpu-server.ts';

const [port = '', grpcPort = ''] = process.argv.slice(2);
const asItIs = (bytes: Buffer): Buffer => bytes;
const server = new Server();
server.addService(
  {
    Unary: {
      path: '/bench.v1.Echo/Unary',
      requestStream: false,
      responseStream: false,
      requestSerialize: asItIs,
      requestDeserialize: asItIs,
      responseSerialize: asItIs,
      responseDeserialize: asItIs,
    },
  },
  {
    Unary: (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) => callback(null, call.request),
  },
);
server.bindAsync(`127.0.0.1:${grpcPort}`, ServerCredentials.createInsecure(), (error) => {
  if (error !== null) throw error;
  serveCpu(Number(port));
});
