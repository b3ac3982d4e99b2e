import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Capability, ServiceRecord } from '@rollcall/client/registry-types.ts';
import { freePorts } from '@rollcall/local/ports.ts';

/**
 * What a call does instead of what the contract says. `hang`: never answers; `cut`: closes the
 * connection.
 */
type Misbehaviour = 'hang' | 'cut' | { readonly status: number; readonly body: unknown };

interface Call {
  /** Method and path below `/api/v1`, as sent. */
  readonly what: string;
  readonly body: string;
  readonly headers: IncomingMessage['headers'];
  /** When it had come, by the monotonic clock. */
  readonly atMs: number;
}

/**
 * A small registry that keeps to contract 1 as far as the clients use it, in memory, and can be
 * made to misbehave: what the real registry does not do on demand.
 */
export interface ContractServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly calls: Call[];
  readonly services: ReadonlyMap<string, ServiceRecord>;
  /**
   * From now on calls that begin with this, such as `POST /services/register`, misbehave;
   * undefined: no longer.
   */
  misbehave(what: string, how: Misbehaviour | undefined): void;
  put(name: string, facts?: { url?: string; capabilities?: Capability[] }): ServiceRecord;
  expire(name: string): void;
  remove(name: string): void;
  /** Forgets past events, so that a watch cannot be resumed. */
  forgetEvents(): void;
  /** Ends all open watches. */
  endWatches(): void;
  /** Writes raw bytes to all open watches. */
  writeToWatches(bytes: Uint8Array | string): void;
  watches(): number;
  callsOf(what: string): Call[];
}

export interface ContractServerOptions {
  /** 0: any free one. */
  readonly port?: number;
  readonly ttl?: number;
}

interface PastEvent {
  readonly version: number;
  readonly text: string;
}

export async function startContractServer({ port = 0, ttl = 60 }: ContractServerOptions = {}): Promise<ContractServer> {
  const calls: Call[] = [];
  const services = new Map<string, ServiceRecord>();
  const misbehaviours = new Map<string, Misbehaviour>();
  const watches = new Set<ServerResponse>();
  let events: PastEvent[] = [];
  let version = 100;
  let firstVersion = version;

  function publish(type: string, service: ServiceRecord): void {
    version += 1;
    const text = `id: ${version}\nevent: ${type}\ndata: ${JSON.stringify(service)}\n\n`;
    events.push({ version, text });
    for (const watch of watches) watch.write(text);
  }

  function put(name: string, { url = `http://${name}.test`, capabilities = [] as Capability[] } = {}): ServiceRecord {
    const known = services.get(name);
    const now = new Date().toISOString();
    const service: ServiceRecord = {
      service_name: name,
      service_url: url,
      service_id: known?.service_id ?? randomUUID(),
      registered_at: known?.registered_at ?? now,
      last_heartbeat: now,
      capabilities,
    };
    services.set(name, service);
    publish(known === undefined ? 'added' : 'modified', service);
    return service;
  }

  function drop(name: string, type: 'expired' | 'removed'): boolean {
    const service = services.get(name);
    if (service === undefined) return false;
    services.delete(name);
    publish(type, service);
    return true;
  }

  function watch(request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    const lastId = request.headers['last-event-id'];
    const from = Number(lastId);
    response.write('retry: 1000\n\n');
    if (lastId !== undefined && from >= firstVersion && from <= version) {
      for (const event of events) if (event.version > from) response.write(event.text);
    } else {
      if (lastId !== undefined) response.write('event: reset\ndata: {}\n\n');
      for (const service of services.values()) response.write(`event: added\ndata: ${JSON.stringify(service)}\n\n`);
      response.write(`id: ${version}\nevent: synced\ndata: {}\n\n`);
    }
    watches.add(response);
    response.on('close', () => watches.delete(response));
  }

  function answer(what: string, body: string): { status: number; body: unknown } {
    const [method = '', path = ''] = what.split(' ');
    const name = decodeURIComponent(path.split('/')[2] ?? '');
    const missing = (status: number) => ({
      status,
      body: { error: 'Service not found', message: `Service '${name}' is not registered` },
    });
    if (what === 'POST /services/register') {
      const request: { service_name: string; service_url: string; capabilities?: Capability[] } = JSON.parse(body);
      const { service_name, service_url: url, capabilities = [] } = request;
      const { last_heartbeat: _, ...registered } = put(service_name, { url, capabilities });
      return { status: 200, body: { ...registered, ttl } };
    }
    if (method === 'POST' && path.split('?')[0]?.endsWith('/heartbeat') === true) {
      if (!services.has(name)) return missing(400);
      return { status: 200, body: { service_name: name, message: 'beaten', ttl } };
    }
    if (path === '/services') return { status: 200, body: { services: [...services.values()], total: services.size } };
    if (method === 'GET' && path.startsWith('/services/')) {
      const service = services.get(name);
      return service === undefined ? missing(404) : { status: 200, body: service };
    }
    if (method === 'DELETE') {
      return drop(name, 'removed') ? { status: 200, body: { message: 'gone', service_name: name } } : missing(404);
    }
    return { status: 404, body: { error: 'Not found', message: what } };
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const what = `${request.method} ${(request.url ?? '').replace(/^\/api\/v1/, '')}`;
    calls.push({ what, body, headers: request.headers, atMs: performance.now() });
    const how = [...misbehaviours].find(([prefix]) => what.startsWith(prefix))?.[1];
    if (how === 'hang') return;
    if (how === 'cut') {
      request.socket.destroy();
      return;
    }
    if (how === undefined && what === 'GET /services/watch') {
      watch(request, response);
      return;
    }
    const { status, body: json } = how ?? answer(what, body);
    const isText = typeof json === 'string';
    response.writeHead(status, { 'content-type': isText ? 'text/plain' : 'application/json' });
    response.end(isText ? json : JSON.stringify(json));
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => request.socket.destroy());
  });
  await new Promise<void>((resolve) => {
    server.listen(port, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on a port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    calls,
    services,
    misbehave(what, how) {
      if (how === undefined) misbehaviours.delete(what);
      else misbehaviours.set(what, how);
    },
    put,
    expire: (name) => void drop(name, 'expired'),
    remove: (name) => void drop(name, 'removed'),
    forgetEvents() {
      events = [];
      version += 1;
      firstVersion = version;
    },
    endWatches() {
      for (const response of watches) response.end();
    },
    writeToWatches(bytes) {
      for (const response of watches) response.write(bytes);
    },
    watches: () => watches.size,
    callsOf: (what) => calls.filter((call) => call.what.startsWith(what)),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A port of the loopback interface on which nothing listens at the moment. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}
