import { errorMessage } from '@rollcall/platform/errors.ts';
import { AddressRefusedError, type AddressRule, isRefusedAddress } from '@rollcall/platform/outbound/address-rules.ts';
import { isUnsent } from '@rollcall/platform/outbound/exchange.ts';
import { guardedLookup } from '@rollcall/platform/outbound/guarded-agent.ts';
import { type OpenSource, SourceErrors } from '../execution/types.ts';
import { unavailable } from './call-errors.ts';
import type { CallContext, CallDeps } from './call-subgraph.ts';
import { openByEvents } from './event-source.ts';
import { NotSpokenError, type Source, type SourceOptions } from './source.ts';
import { openByWebSocket } from './websocket-source.ts';

export interface OpenSourceDeps extends Omit<CallDeps, 'timeoutMs' | 'traffic' | 'queries' | 'generation'> {
  /** Where connections may go. */
  readonly mayConnect: AddressRule;
}

const MOST_URLS = 2;

/**
 * Opens subscriptions of the subgraphs of one graph: by WebSocket, and where a subgraph has none for
 * GraphQL by server-sent events. Which of them it was is remembered as long as that works.
 */
export function createOpenSource(deps: OpenSourceDeps): OpenSource<CallContext> {
  const { dispatcher, urlsOf, identityFor, headersFor, limitBytes, mayConnect, show, log } = deps;
  const lookup = guardedLookup(mayConnect);
  const byEvents = new Set<string>();

  return async function* (call, { headers: passed, caller }, signal) {
    const { subgraph } = call;
    try {
      for await (const answer of await opened()) yield show(subgraph, answer);
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ subgraph, message: errorMessage(error) }, 'a subscription of a subgraph ended');
      if (error instanceof SourceErrors) throw new SourceErrors(show(subgraph, { errors: error.errors }).errors);
      throw error;
    }

    /** Of instances that take no connection another is tried. */
    async function opened(): Promise<Source> {
      const urls = urlsOf(subgraph);
      const begin = Math.floor(Math.random() * urls.length);
      const inTurn = [...urls.slice(begin), ...urls.slice(0, begin)].slice(0, MOST_URLS);
      const identity = caller === undefined ? {} : await identityFor(caller, subgraph);
      signal.throwIfAborted();
      const headers = { ...headersFor(subgraph, passed), ...identity };
      let problem: unknown = unavailable('The service is not in the graph any more');
      for (const url of inTurn) {
        try {
          return await openedAt({ url: new URL(url), headers, lookup, limitBytes, signal });
        } catch (error) {
          problem = error;
          if (!isUnsent(error)) break;
        }
      }
      throw problem instanceof NotSpokenError ? unavailable('The service takes no subscriptions') : problem;
    }

    async function openedAt(options: SourceOptions): Promise<Source> {
      const { hostname } = options.url;
      if (isRefusedAddress(hostname, mayConnect)) throw new AddressRefusedError(hostname, [hostname]);
      if (!byEvents.has(subgraph)) {
        try {
          return await openByWebSocket(call, options);
        } catch (error) {
          if (!(error instanceof NotSpokenError)) throw error;
        }
      }
      try {
        const source = await openByEvents(dispatcher, call, options);
        byEvents.add(subgraph);
        return source;
      } catch (error) {
        byEvents.delete(subgraph);
        throw error;
      }
    }
  };
}
