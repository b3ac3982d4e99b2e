import { createHmac, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { apiClientKind, labels } from '@rollcall/crds/kinds.ts';
import { gatewayProcess } from '@rollcall/gateway/service.ts';
import { inject, vi } from 'vitest';
import type { TestNamespace } from '../support/kube.ts';
import {
  type Replica,
  type ReplicaOptions,
  type RunningService,
  startReadyReplica,
  startService,
} from '../support/replica.ts';

export interface GatewayOptions {
  readonly namespace: TestNamespace;
  /** Base URL of the registry. */
  readonly registry: string;
  /** More settings, by the names of their variables. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Runs a replica in this process on the shared cluster, and waits until it is ready. */
export function startGateway(options: GatewayOptions): Promise<RunningService> {
  return startService(gatewayProcess, replicaOptions(options));
}

/** As {@link startGateway}, as a process of its own, to be killed, frozen or measured. */
export function startGatewayProcess(options: GatewayOptions): Promise<Replica> {
  return startReadyReplica('services/gateway/src/main.ts', replicaOptions(options));
}

function replicaOptions({ namespace, registry, settings }: GatewayOptions): ReplicaOptions {
  return {
    logDirectory: inject('temporaryDirectory'),
    access: inject('podEnvironment'),
    namespace: namespace.name,
    settings: { ROLLCALL_REGISTRY_URLS: registry, ...settings },
  };
}

export interface TestClient {
  readonly id: string;
  readonly secret: string;
}

export interface ClientOptions {
  readonly id: string;
  readonly tier?: 'Premium' | 'Standard' | 'Free';
  readonly scopes?: readonly string[];
  /** What the Secret holds; the client's secret itself by default. */
  readonly stored?: (secret: string) => string;
}

/** Applies an ApiClient and its Secret as an operator would. */
export async function createClient(
  namespace: Pick<TestNamespace, 'kubectl'>,
  options: ClientOptions,
): Promise<TestClient> {
  const { id, tier = 'Premium', scopes = [], stored = (secret: string) => secret } = options;
  const secret = randomBytes(24).toString('base64url');
  const manifests = [
    secretManifest(id, stored(secret)),
    {
      apiVersion: apiClientKind.apiVersion,
      kind: apiClientKind.kind,
      metadata: { name: id },
      spec: { clientId: id, tier, scopes, secretRef: { name: id } },
    },
  ];
  await namespace.kubectl(['apply', '-f', '-'], {
    stdin: manifests.map((each) => JSON.stringify(each)).join('\n---\n'),
  });
  return { id, secret };
}

export function secretManifest(name: string, secret: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, labels: { [labels.apiClientSecret]: 'true' } },
    stringData: { secret },
  };
}

/** Asks for a token. @param form besides the grant type. */
export function requestToken(
  gateway: Pick<RunningService, 'url'>,
  { id, secret }: TestClient,
  form: Record<string, string> = {},
) {
  return fetch(`${gateway.url}/api/v1/auth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', ...form }),
  });
}

/** The token of a client that the gateway may learn of in a moment only. */
export function tokenOf(gateway: Pick<RunningService, 'url'>, client: TestClient): Promise<string> {
  return vi.waitFor(
    async () => {
      const answer = await requestToken(gateway, client);
      const body = (await answer.json()) as { access_token?: string };
      if (body.access_token === undefined) throw new Error(JSON.stringify(body));
      return body.access_token;
    },
    { timeout: 10_000, interval: 200 },
  );
}

/** A service of a test's own. */
export interface Backend extends AsyncDisposable {
  readonly url: string;
  readonly server: Server;
  /** Of all requests that came, the newest last. */
  readonly requests: readonly IncomingMessage[];
}

export async function startBackend(listener: RequestListener = echo): Promise<Backend> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    listener(request, response);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    server,
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

/** Answers with what it was asked. */
function echo(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const { method, url, headers } = request;
    const body = Buffer.concat(chunks).toString();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ method, url, headers, body }));
  });
}

/** A JSON Web Token by hand, for what no library would sign. */
export function forgedToken(header: object, claims: object, signature: (signed: string) => string = () => ''): string {
  const signed = `${encode(header)}.${encode(claims)}`;
  return `${signed}.${signature(signed)}`;
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

/** HMAC-SHA256 with a key that everybody has. */
export function hs256(key: string): (signed: string) => string {
  return (signed) => createHmac('sha256', key).update(signed).digest('base64url');
}
