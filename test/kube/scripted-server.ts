import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { writeKubeconfig } from './fixtures.ts';

/**
 * One answer of a server that follows a script: what a real API server does too rarely to wait for
 * it.
 */
export interface ScriptStep {
  readonly request: 'list' | 'watch';
  readonly answer: (response: ServerResponse, query: URLSearchParams) => void | Promise<void>;
}

export interface ScriptedServer extends AsyncDisposable {
  readonly kubeconfigPath: string;
  /**
   * The requests so far: `list <continue>` and `watch <resourceVersion>`, with when they came in
   * milliseconds.
   */
  readonly requests: { readonly what: string; readonly atMs: number }[];
}

/**
 * Answers each list and watch with the next step for it; without one, lists are empty and watches
 * stay silent.
 */
export async function startScriptedServer(steps: readonly ScriptStep[]): Promise<ScriptedServer> {
  const left = [...steps];
  const requests: { what: string; atMs: number }[] = [];
  const server = createServer((request, response) => {
    const query = new URL(request.url ?? '/', 'http://localhost').searchParams;
    const kind = query.has('watch') ? 'watch' : 'list';
    const detail = query.get(kind === 'watch' ? 'resourceVersion' : 'continue') ?? '';
    // A probe asks for one object and is not part of the script.
    if (query.get('limit') === '1') {
      sendList(response, { version: '1' });
      return;
    }
    requests.push({ what: `${kind} ${detail}`.trim(), atMs: performance.now() });
    const index = left.findIndex((step) => step.request === kind);
    const [step] = index === -1 ? [] : left.splice(index, 1);
    if (step !== undefined) void step.answer(response, query);
    else if (kind === 'list') sendList(response, { version: '1' });
    else response.writeHead(200).flushHeaders();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no port');
  return {
    kubeconfigPath: await writeKubeconfig({
      cluster: { server: `http://127.0.0.1:${address.port}`, 'insecure-skip-tls-verify': true },
      user: {},
    }),
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A Lease as the server would send it. */
export function wireLease(name: string, resourceVersion: number): object {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: `${resourceVersion}` },
  };
}

export interface ListAnswer {
  readonly items?: readonly object[];
  readonly version: string;
  /** Token of the next page. */
  readonly next?: string;
}

export function sendList(response: ServerResponse, { items = [], version, next = '' }: ListAnswer): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ metadata: { resourceVersion: version, continue: next }, items }));
}

export interface StatusAnswer {
  readonly code: number;
  readonly reason: string;
  readonly retryAfter?: number;
}

export function sendStatus(response: ServerResponse, { code, reason, retryAfter }: StatusAnswer): void {
  const headers = retryAfter === undefined ? {} : { 'retry-after': `${retryAfter}` };
  response.writeHead(code, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify({ kind: 'Status', code, reason, message: `scripted ${code}` }));
}

export function sendEvents(response: ServerResponse, events: readonly object[]): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  for (const event of events) response.write(`${JSON.stringify(event)}\n`);
}
