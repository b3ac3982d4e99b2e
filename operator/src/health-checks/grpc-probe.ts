import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { protocolDirectory, serviceDefinition } from '@rollcall/platform/grpc/protocols.ts';
import type { Lookups } from '@rollcall/platform/outbound/lookups.ts';
import { bareHost, portOf } from '@rollcall/platform/outbound/url-host.ts';
import type { Probe } from './probe.ts';

const SERVICE = 'grpc.health.v1.Health';
const ANSWER_LIMIT_BYTES = 4096;

/** The standard health protocol (grpc/doc/health-checking.md); each check makes a connection of its own. */
export function createGrpcProbe({ resolve }: Pick<Lookups, 'resolve'>): Probe {
  const includeDirs = [protocolDirectory];
  const protocol = loadSync('grpc/health/v1/health.proto', { includeDirs, enums: String, defaults: true });
  const method = serviceDefinition(protocol, SERVICE)['Check'];
  if (method === undefined) throw new Error(`${SERVICE} has no method Check`);
  const { path, requestSerialize, responseDeserialize } = method;

  return async (url, { service = '' }, signal) => {
    const addresses = await resolve(bareHost(url.hostname));
    signal.throwIfAborted();
    const client = new Client(targetOf(addresses, portOf(url)), credentialsFor(url), optionsFor(url));
    try {
      const answer = await call(client, { service }, signal);
      const isServing = 'status' in answer && answer.status === 'SERVING';
      if (!isServing) throw new Error('it answered that it is not SERVING');
      return 'it answered SERVING';
    } finally {
      client.close();
    }
  };

  /** What the service says of its failure is not repeated. */
  function call(client: Client, request: object, signal: AbortSignal): Promise<object> {
    const { promise, resolve: done, reject } = Promise.withResolvers<object>();
    const ended = (error: ServiceError | null, response?: object) => {
      if (response === undefined) reject(new Error(`it answered ${status[error?.code ?? status.UNKNOWN]}`));
      else done(response);
    };
    const begun = client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, new Metadata(), ended);
    const cancel = () => begun.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    return promise.finally(() => signal.removeEventListener('abort', cancel));
  }
}

/** Of the family that is named first, as several cannot be named at once. */
function targetOf(addresses: readonly { readonly address: string; readonly family: number }[], port: number): string {
  const [first] = addresses;
  const hosts = addresses.filter(({ family }) => family === first?.family).map(({ address }) => address);
  if (first?.family === 6) return `ipv6:${hosts.map((host) => `[${host}]:${port}`).join(',')}`;
  return `ipv4:${hosts.map((host) => `${host}:${port}`).join(',')}`;
}

function credentialsFor({ protocol }: URL) {
  return protocol === 'https:' ? credentials.createSsl() : credentials.createInsecure();
}

/** The addresses have been checked: nothing may lead elsewhere, such as a proxy. */
function optionsFor(url: URL) {
  return {
    'grpc.default_authority': url.host,
    'grpc.ssl_target_name_override': bareHost(url.hostname),
    'grpc.enable_http_proxy': 0,
    'grpc.enable_retries': 0,
    'grpc.use_local_subchannel_pool': 1,
    'grpc.max_receive_message_length': ANSWER_LIMIT_BYTES,
  };
}
