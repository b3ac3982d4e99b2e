import { ask, NoAnswerError } from '@rollcall/platform/outbound/exchange.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { GraphQLError } from 'graphql/index.js';
import type { Dispatcher } from 'undici';
import type { CallSubgraph, SubgraphAnswer } from '../execution/types.ts';
import type { ShownCaller } from './identities.ts';
import type { Show } from './masking.ts';

/** What calls of subgraphs take over from the request of a client. */
export interface CallContext {
  /** By which it is known in which trace and in which language. */
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: nobody knows. */
  readonly caller: ShownCaller | undefined;
}

/** How subgraphs are reached. */
export interface CallDeps {
  /** Connects only where it may, and keeps connections. */
  readonly dispatcher: Dispatcher;
  /** Of a subgraph, by its name; each is as good as the others. */
  readonly urlsOf: (subgraph: string) => readonly string[];
  /** By which a subgraph knows who calls. @throws GraphQLError. */
  readonly identityFor: (caller: ShownCaller, subgraph: string) => Promise<Readonly<Record<string, string>>>;
  /** From the call to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly limitBytes: number;
  readonly show: Show;
  readonly log: Logger;
}

const JSON_BOTH_WAYS = { 'content-type': 'application/json', accept: 'application/json' };

/**
 * Calls subgraphs by POST, each URL in its turn. Another is tried where nothing was sent, or where a
 * query had no answer. What is not an answer of GraphQL is an error with the code SUBGRAPH_UNAVAILABLE.
 */
export function createCallSubgraph(deps: CallDeps): CallSubgraph<CallContext> {
  const { dispatcher, urlsOf, identityFor, timeoutMs, limitBytes, show, log } = deps;
  const turns = new Map<string, number>();

  return async ({ subgraph, query, variables, operationName, kind }, { headers, caller }, signal) => {
    const body = JSON.stringify({ query, variables, ...(operationName === undefined ? {} : { operationName }) });
    const [first, ...others] = inTurn(subgraph);
    if (first === undefined) throw unavailable('The service is not in the graph any more');
    const identity = caller === undefined ? {} : await identityFor(caller, subgraph);
    signal.throwIfAborted();
    try {
      return show(subgraph, await post(first));
    } catch (error) {
      signal.throwIfAborted();
      const [second] = others;
      if (!mayTryAgain(error) || second === undefined) throw error;
      return show(subgraph, await post(second));
    }

    async function post(url: string): Promise<SubgraphAnswer> {
      try {
        const question = { method: 'POST' as const, url: new URL(url), body, timeoutMs, limitBytes };
        const answer = await ask(
          dispatcher,
          { ...question, headers: { ...headers, ...identity, ...JSON_BOTH_WAYS } },
          signal,
        );
        if (answer.cut) throw unavailable('The answer of the service is too large');
        return answerOf(answer.body);
      } catch (error) {
        // The message may name addresses, which are nothing for clients.
        if (error instanceof NoAnswerError) log.warn({ subgraph, message: error.message }, 'a subgraph did not answer');
        throw error;
      }
    }

    function mayTryAgain(error: unknown): boolean {
      return error instanceof NoAnswerError && (error.wasUnsent || kind === 'query');
    }
  };

  function inTurn(subgraph: string): readonly string[] {
    const urls = urlsOf(subgraph);
    const begin = urls.length === 0 ? 0 : (turns.get(subgraph) ?? 0) % urls.length;
    turns.set(subgraph, begin + 1);
    return [...urls.slice(begin), ...urls.slice(0, begin)];
  }
}

function answerOf(body: string): SubgraphAnswer {
  try {
    const answer: unknown = JSON.parse(body);
    if (typeof answer === 'object' && answer !== null && ('data' in answer || 'errors' in answer)) return answer;
  } catch {
    // Nor is what is no JSON.
  }
  throw unavailable('The service did not answer as GraphQL');
}

/** What clients hear of a subgraph that cannot be had. */
export function unavailable(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'SUBGRAPH_UNAVAILABLE' } });
}
