import { ask, type HttpAnswer, NoAnswerError } from '@rollcall/platform/outbound/exchange.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { Dispatcher } from 'undici';
import type { CallSubgraph, SubgraphAnswer, SubgraphCall } from '../execution/types.ts';
import { unavailable } from './call-errors.ts';
import type { AnswerHeaders } from './headers/answer-headers.ts';
import type { Fields } from './headers/follow.ts';
import { type PassedHeaders, untraced } from './headers/passed-headers.ts';
import type { ShownCaller } from './identities.ts';
import type { Show } from './masking.ts';
import type { SharedCalls } from './shared-calls.ts';
import type { Traffic } from './traffic.ts';

/** What calls of subgraphs take over from the request of a client. */
export interface CallContext {
  /** All that some service may get. */
  readonly headers: Fields;
  /** Undefined: nobody knows. */
  readonly caller: ShownCaller | undefined;
  /** Takes what the client gets of the header fields of answers; absent: it gets none. */
  readonly answered?: AnswerHeaders | undefined;
}

/** How subgraphs are reached. */
export interface CallDeps {
  /** Connects only where it may, and keeps connections. */
  readonly dispatcher: Dispatcher;
  readonly traffic: Traffic;
  /** Of a subgraph, by its name; each is as good as the others. */
  readonly urlsOf: (subgraph: string) => readonly string[];
  /** By which a subgraph knows who calls. @throws GraphQLError. */
  readonly identityFor: (caller: ShownCaller, subgraph: string) => Promise<Readonly<Record<string, string>>>;
  readonly headersFor: PassedHeaders['forService'];
  /** From the call to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly limitBytes: number;
  /** Of all graphs: what a mutation by one has changed, queries by another may have been asked before. */
  readonly queries: SharedCalls<HttpAnswer>;
  /** Of the graph: others may have other URLs. */
  readonly generation: number;
  readonly show: Show;
  readonly log: Logger;
}

const JSON_BOTH_WAYS = { 'content-type': 'application/json', accept: 'application/json' };

/**
 * Calls subgraphs by POST, each URL in its turn. Another is tried where nothing was sent, or where a
 * query had no answer. Equal queries of one caller that are under way at the same time are one call.
 * What is not an answer of GraphQL is an error with the code SUBGRAPH_UNAVAILABLE.
 */
export function createCallSubgraph(deps: CallDeps): CallSubgraph<CallContext> {
  const { dispatcher, traffic, urlsOf, identityFor, headersFor, timeoutMs, limitBytes, queries, log } = deps;
  const turns = new Map<string, number>();

  return async (call, context, signal) => {
    const { subgraph, kind } = call;
    const { caller } = context;
    const body = bodyOf(call);
    const headers = headersFor(subgraph, context.headers);
    const send = (signal: AbortSignal) => answered({ call, body, headers, caller }, signal);
    const read = (answer: HttpAnswer) => {
      context.answered?.take(subgraph, answer.allHeaders);
      return deps.show(subgraph, answerOf(answer));
    };
    if (kind !== 'query') {
      try {
        return read(await send(signal));
      } finally {
        // What was asked before may not have what it has changed.
        queries.separate();
      }
    }
    const key = `${JSON.stringify([deps.generation, subgraph, caller?.token, untraced(headers)])}${body}`;
    const waiter = { key, signal, onShared: () => traffic.shared(subgraph) };
    return read(await queries.run(waiter, send));
  };

  async function answered({ call, body, headers, caller }: Asked, signal: AbortSignal): Promise<HttpAnswer> {
    const { subgraph, kind } = call;
    const urls = inTurn(subgraph);
    const [first, second] = urls;
    if (first === undefined) throw unavailable('The service is not in the graph any more');
    const identity = caller === undefined ? {} : await identityFor(caller, subgraph);
    signal.throwIfAborted();
    const question = { method: 'POST' as const, body, headers: { ...headers, ...identity, ...JSON_BOTH_WAYS } };
    const post = async (url: string) => {
      try {
        return await ask(dispatcher, { ...question, url: new URL(url), timeoutMs, limitBytes }, signal);
      } catch (error) {
        // The message may name addresses, which are nothing for clients.
        if (error instanceof NoAnswerError) log.warn({ subgraph, message: error.message }, 'a subgraph did not answer');
        throw error;
      }
    };
    return traffic.pass(
      { subgraph, urls },
      () =>
        post(first).catch((error: unknown) => {
          signal.throwIfAborted();
          const mayTryAgain = error instanceof NoAnswerError && (error.wasUnsent || kind === 'query');
          if (!mayTryAgain || second === undefined) throw error;
          return post(second);
        }),
      signal,
    );
  }

  function inTurn(subgraph: string): readonly string[] {
    const urls = urlsOf(subgraph);
    const begin = urls.length === 0 ? 0 : (turns.get(subgraph) ?? 0) % urls.length;
    turns.set(subgraph, begin + 1);
    return [...urls.slice(begin), ...urls.slice(0, begin)];
  }
}

interface Asked extends Pick<CallContext, 'headers' | 'caller'> {
  readonly call: SubgraphCall;
  readonly body: string;
}

function bodyOf({ query, variables, operationName }: SubgraphCall): string {
  return JSON.stringify({ query, variables, ...(operationName === undefined ? {} : { operationName }) });
}

/** Each who waits gets an answer of its own: it is changed when it is merged with others. */
function answerOf({ body, cut, isUtf8 }: HttpAnswer): SubgraphAnswer {
  if (cut) throw unavailable('The answer of the service is too large');
  try {
    const answer: unknown = isUtf8 ? JSON.parse(body) : undefined;
    if (typeof answer === 'object' && answer !== null && ('data' in answer || 'errors' in answer)) return answer;
  } catch {
    // Nor is what is no JSON.
  }
  throw unavailable('The service did not answer as GraphQL');
}
