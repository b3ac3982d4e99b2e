// `node grpc-backend.ts PORT HOST KEEP_ALIVE_MS`: a gRPC server whose messages are bytes as they
// are. SIGTERM ends it gracefully (GOAWAY).
import { once } from 'node:events';
import {
  type Metadata,
  Metadata as NewMetadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type StatusObject,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { methodDefinition } from './grpc-methods.ts';

/** What the backend has seen, for tests to ask. */
export interface BackendStats {
  readonly streamedBytes: number;
  readonly receivedBytes: number;
  readonly open: number;
  readonly cancelled: number;
  readonly unary: number;
}

const stats = { streamedBytes: 0, receivedBytes: 0, open: 0, cancelled: 0, unary: 0 };

const service: ServiceDefinition = {
  Unary: methodDefinition('Unary'),
  ClientStream: methodDefinition('ClientStream'),
  ServerStream: methodDefinition('ServerStream'),
  Bidi: methodDefinition('Bidi'),
  Stats: methodDefinition('Stats'),
};

/**
 * Everything that came as metadata goes back, as initial metadata and, by other names, as trailers.
 */
function mirror(metadata: Metadata, to: Metadata, prefix: string): Metadata {
  for (const [name, values] of Object.entries(metadata.toJSON())) {
    for (const value of Array.isArray(values) ? values : []) to.add(`${prefix}${name}`, value);
  }
  return to;
}

const one = (metadata: Metadata, name: string) => metadata.get(name)[0]?.toString();

const STATUSES = Object.values(status).filter((value) => typeof value === 'number');

function failureOf(metadata: Metadata): Partial<StatusObject> | undefined {
  const code = one(metadata, 'fail');
  if (code === undefined) return undefined;
  return {
    code: STATUSES.find((known) => String(known) === code) ?? status.UNKNOWN,
    details: decodeURIComponent(one(metadata, 'fail-message') ?? ''),
    metadata: mirror(metadata, new NewMetadata(), 't-'),
  };
}

function count(call: { on(event: 'cancelled', listener: () => void): unknown }): void {
  call.on('cancelled', () => {
    stats.cancelled += 1;
  });
}

async function serveUnary(call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>): Promise<void> {
  stats.unary += 1;
  count(call);
  const delayMs = Number(one(call.metadata, 'delay-ms') ?? 0);
  if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
  const failure = failureOf(call.metadata);
  const deadline = call.getDeadline();
  const head = mirror(call.metadata, new NewMetadata(), 'h-');
  head.set('h-left-ms', String((typeof deadline === 'number' ? deadline : deadline.getTime()) - Date.now()));
  if (failure === undefined) call.sendMetadata(head);
  if (failure === undefined) callback(null, call.request, mirror(call.metadata, new NewMetadata(), 't-'));
  else callback(failure);
}

async function serveStream(call: ServerWritableStream<Buffer, Buffer>): Promise<void> {
  count(call);
  const { messages, bytes, thenFail } = JSON.parse(call.request.toString()) as Record<string, number>;
  call.sendMetadata(mirror(call.metadata, new NewMetadata(), 'h-'));
  for (let sent = 0; sent < (messages ?? 0) && !call.cancelled; sent += 1) {
    const message = Buffer.alloc(bytes ?? 0, sent % 256);
    stats.streamedBytes += message.length;
    if (!call.write(message)) await Promise.race([once(call, 'drain'), once(call, 'cancelled')]);
  }
  if (thenFail !== undefined) call.emit('error', { code: thenFail, details: 'as asked for' });
  else call.end(mirror(call.metadata, new NewMetadata(), 't-'));
}

async function serveUpload(call: ServerReadableStream<Buffer, Buffer>, callback: sendUnaryData<Buffer>): Promise<void> {
  count(call);
  const early = one(call.metadata, 'answer-after');
  let messages = 0;
  let bytes = 0;
  const waitMs = Number(one(call.metadata, 'read-after-ms') ?? 0);
  if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
  for await (const message of call as AsyncIterable<Buffer>) {
    messages += 1;
    bytes += message.length;
    stats.receivedBytes += message.length;
    if (early !== undefined && messages >= Number(early)) break;
  }
  const failure = failureOf(call.metadata);
  callback(failure ?? null, Buffer.from(JSON.stringify({ messages, bytes })));
}

function serveBoth(call: ServerDuplexStream<Buffer, Buffer>): void {
  count(call);
  call.on('data', (message: Buffer) => {
    if (!call.write(message)) {
      call.pause();
      call.once('drain', () => call.resume());
    }
  });
  call.on('end', () => call.end());
}

const [port = '', host = '', keepAliveMs = ''] = process.argv.slice(2);
const server = new Server({
  'grpc.max_receive_message_length': -1,
  'grpc.max_send_message_length': -1,
  'grpc.keepalive_time_ms': Number(keepAliveMs),
});
server.addService(service, {
  Unary: (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) => void serveUnary(call, callback),
  ServerStream: (call: ServerWritableStream<Buffer, Buffer>) => void serveStream(call),
  ClientStream: (call: ServerReadableStream<Buffer, Buffer>, callback: sendUnaryData<Buffer>) =>
    void serveUpload(call, callback),
  Bidi: serveBoth,
  Stats: (_call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) =>
    callback(null, Buffer.from(JSON.stringify(stats satisfies BackendStats))),
});
server.bindAsync(`${host}:${port}`, ServerCredentials.createInsecure(), (error) => {
  if (error !== null) throw error;
});
process.on('SIGTERM', () => server.tryShutdown(() => process.exit(0)));
