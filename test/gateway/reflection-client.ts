import { createRequire } from 'node:module';
import { Client, type ClientDuplexStream, credentials, Metadata, type StatusObject } from '@grpc/grpc-js';
import { loadFileDescriptorSetFromBuffer, loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { serviceDefinition } from '@rollcall/platform/grpc/protocols.ts';
import { Writer } from 'protobufjs';

interface ReflectionAnswer {
  readonly listServicesResponse?: { readonly service: readonly { readonly name: string }[] };
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto: readonly Uint8Array[] };
  readonly errorResponse?: { readonly errorCode: number };
}

/** The standard server reflection, as tools use it: all questions go over one stream. */
export interface ReflectionClient extends Disposable {
  /** The full names of all services. */
  services(): Promise<readonly string[]>;
  /** The protocol that a symbol is part of, or the error code of the answer. */
  protocolOf(symbol: string): Promise<PackageDefinition | number>;
  readonly ended: Promise<StatusObject>;
}

export interface ReflectionOptions {
  readonly version?: 'v1' | 'v1alpha';
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Of `FileDescriptorSet { repeated FileDescriptorProto file = 1; }` */
const FILE_TAG = 0x0a;

export function openReflection(address: string, options: ReflectionOptions = {}): ReflectionClient {
  const { version = 'v1', metadata = {} } = options;
  const client = new Client(address, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  const call = open(client, version, metadata);
  const ended = new Promise<StatusObject>((resolve) => {
    call.on('status', resolve);
  });
  const answers = call[Symbol.asyncIterator]() as AsyncIterator<ReflectionAnswer>;

  async function ask(request: object): Promise<ReflectionAnswer> {
    call.write(request);
    const { done, value } = await answers.next();
    if (done === true) throw new Error('The stream has ended');
    return value;
  }

  return {
    ended,
    async services() {
      const { listServicesResponse } = await ask({ listServices: '*' });
      return (listServicesResponse?.service ?? []).map(({ name }) => name);
    },
    async protocolOf(symbol) {
      const { fileDescriptorResponse, errorResponse } = await ask({ fileContainingSymbol: symbol });
      if (errorResponse !== undefined) return errorResponse.errorCode;
      const files = Writer.create();
      for (const file of fileDescriptorResponse?.fileDescriptorProto ?? []) files.uint32(FILE_TAG).bytes(file);
      return loadFileDescriptorSetFromBuffer(Buffer.from(files.finish()), { defaults: true });
    },
    [Symbol.dispose]() {
      call.on('error', () => undefined);
      call.cancel();
      client.close();
    },
  };
}

function open(
  client: Client,
  version: string,
  metadata: Readonly<Record<string, string>>,
): ClientDuplexStream<object, ReflectionAnswer> {
  const file = `@grpc/reflection/build/proto/grpc/reflection/${version}/reflection.proto`;
  const protocol = loadSync(createRequire(import.meta.url).resolve(file));
  const method = serviceDefinition(protocol, `grpc.reflection.${version}.ServerReflection`)['ServerReflectionInfo'];
  if (method === undefined) throw new Error('The protocol of reflection is not complete');
  const { path, requestSerialize, responseDeserialize } = method;
  const entries = new Metadata();
  for (const [name, value] of Object.entries(metadata)) entries.set(name, value);
  return client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize as AnswerParser, entries);
}

type AnswerParser = (bytes: Buffer) => ReflectionAnswer;
