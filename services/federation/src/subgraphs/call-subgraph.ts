import { ask, NoAnswerError } from '@rollcall/platform/outbound/exchange.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { GraphQLError } from 'graphql/index.js';
import type { Dispatcher } from 'undici';
import type { CallSubgraph, SubgraphAnswer } from '../execution/types.ts';
import { maskedErrors } from './masking.ts';

/** What calls of subgraphs take over from the request of a client. */
export interface CallContext {
  /** By which it is known who calls, in which trace and in which language. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface CallDeps {
  /** Connects only where it may, and keeps connections. */
  readonly dispatcher: Dispatcher;
  /** By the name of the subgraph. */
  readonly urlOf: (subgraph: string) => string | undefined;
  /** From the call to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly limitBytes: number;
  /** Whether clients get the messages of errors of subgraphs. */
  readonly areErrorsMasked: boolean;
  readonly log: Logger;
}

/** Calls subgraphs by POST. What is not an answer of GraphQL is an error with the code SUBGRAPH_UNAVAILABLE. */
export function createCallSubgraph(deps: CallDeps): CallSubgraph<CallContext> {
  const { dispatcher, urlOf, timeoutMs, limitBytes, areErrorsMasked, log } = deps;

  return async ({ subgraph, query, variables, operationName }, { headers }, signal) => {
    const url = urlOf(subgraph);
    if (url === undefined) throw unavailable('The service is not in the graph any more');
    try {
      const { body, cut } = await ask(
        dispatcher,
        {
          method: 'POST',
          url: new URL(url),
          headers: { ...headers, 'content-type': 'application/json', accept: 'application/json' },
          body: JSON.stringify({ query, variables, ...(operationName === undefined ? {} : { operationName }) }),
          timeoutMs,
          limitBytes,
        },
        signal,
      );
      if (cut) throw unavailable('The answer of the service is too large');
      return shown(subgraph, answerOf(body));
    } catch (error) {
      signal.throwIfAborted();
      // The message may name addresses, which are nothing for clients.
      if (error instanceof NoAnswerError) log.warn({ subgraph, message: error.message }, 'a subgraph did not answer');
      throw error;
    }
  };

  function shown(subgraph: string, answer: SubgraphAnswer): SubgraphAnswer {
    if (!Array.isArray(answer.errors) || answer.errors.length === 0) return answer;
    const errors = maskedErrors(answer.errors);
    log.warn({ subgraph, codes: errors.map(({ extensions }) => extensions.code) }, 'a subgraph answered with errors');
    return areErrorsMasked ? { ...answer, errors } : answer;
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

function unavailable(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'SUBGRAPH_UNAVAILABLE' } });
}
