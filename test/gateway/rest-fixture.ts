import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRestProxy, type RestProxy } from '@rollcall/gateway/doors/rest/rest.ts';
import { GatewayError } from '@rollcall/gateway/errors.ts';
import { placeOf } from '@rollcall/gateway/upstream/discovery/endpoint.ts';
import { endpointsBy } from '@rollcall/gateway/upstream/discovery/endpoints.ts';
import type { Target } from '@rollcall/gateway/upstream/discovery/targets.ts';
import { createDispatchers } from '@rollcall/gateway/upstream/dispatchers.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { defaultBreakerPolicy } from '@rollcall/platform/outbound/breaker.ts';
import { createLookups, type Lookups, type Resolve } from '@rollcall/platform/outbound/lookups.ts';
import { createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';

/** The proxy for HTTP/1.1 in this process, and servers before and behind it. */
export interface RestFixture {
  /** Serves on an address of this machine; port 0: a free one. */
  readonly serve: (address: string, port: number, listener: RequestListener) => Promise<Server>;
  /** @param lookups for connections by name; undefined: the system's. */
  readonly newProxy: (lookups?: Lookups) => RestProxy;
  /**
   * @returns the URL of a server before one service. It answers 503 for what is not sent on, with
   * the reason.
   */
  readonly frontOf: (target: Target, proxy?: RestProxy) => Promise<string>;
}

/** Requests that may be under way at one address. */
export const MOST_UNDER_WAY = 16;

/** @param stack ends what is made. */
export function restFixture(stack: AsyncDisposableStack): RestFixture {
  async function serve(address: string, port: number, listener: RequestListener): Promise<Server> {
    const server = createServer(listener);
    await new Promise<void>((resolve) => {
      server.listen(port, address, resolve);
    });
    stack.defer(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    });
    return server;
  }

  function newProxy(lookups = createLookups()): RestProxy {
    const dispatchers = createDispatchers({ connectTimeoutMs: 1000, lookups });
    stack.defer(() => dispatchers.destroy());
    return createRestProxy({
      dispatchers,
      concurrency: createConcurrencyLimiter({ mostPerKey: 100 }),
      authenticator: { stillHolds: () => true },
      clock: systemClock,
      headersTimeoutMs: 2000,
      bodyTimeoutMs: 2000,
    });
  }

  return {
    serve,
    newProxy,
    async frontOf(target, proxy = newProxy()) {
      const front = await serve('127.0.0.1', 0, (request, response) => {
        const forwarded = {
          clientAddress: '',
          forwardedFor: '',
          protocol: 'http',
          host: '',
          requestId: '',
          service: 'several',
          identity: [],
        } as const;
        const proxied = {
          target,
          holder: undefined,
          path: request.url ?? '/',
          request,
          response,
          forwarded,
          trace: undefined,
          span: undefined,
          addedHeaders: {},
          timeoutMs: undefined,
          bodyLimit: 1_000_000,
        };
        void answer(proxy, proxied);
      });
      return `http://127.0.0.1:${portOf(front)}`;
    },
  };
}

export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/** A service at a host name. */
export function targetNamed(hostname: string, port: number, { resolve }: { readonly resolve: Resolve }): Target {
  const endpointsOf = endpointsBy({
    mayConnect: addressRules.any,
    resolve,
    breakerPolicy: defaultBreakerPolicy,
    mostUnderWay: MOST_UNDER_WAY,
    clock: systemClock,
  });
  const endpoints = endpointsOf([placeOf(`http://${hostname}:${port}`)]);
  return { service: hostname, endpoints, grpcEndpoints: undefined };
}

async function answer(proxy: RestProxy, proxied: Parameters<RestProxy['forward']>[0]): Promise<void> {
  const { response } = proxied;
  try {
    const outcome = await proxy.forward(proxied);
    if (outcome.type === 'failed' && !outcome.begun) response.writeHead(502).end();
  } catch (error) {
    if (error instanceof GatewayError) response.writeHead(503).end(error.message);
    else response.writeHead(500).end();
  }
}
