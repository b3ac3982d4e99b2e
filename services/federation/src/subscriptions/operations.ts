import { hash } from 'node:crypto';
import { formatError } from '@rollcall/platform/graphql/errors.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { LateError, withinTime } from '@rollcall/platform/within-time.ts';
import type { Documents, NamedDocument } from '../documents/documents.ts';
import { federationError } from '../errors.ts';
import type { Graph, GraphOperation, GraphRequest } from '../execution/graph.ts';
import { drawPlace } from '../execution/overrides.ts';
import type { CallContext } from '../subgraphs/call-subgraph.ts';
import { untraced } from '../subgraphs/headers/passed-headers.ts';
import type { Usage } from '../usage/usage.ts';
import type { Listener, SubscribedOperation } from './feed.ts';
import type { Feeds } from './feeds.ts';

export interface OperationsDeps {
  /** @throws ServiceError NOT_FOUND where there is no such contract. */
  readonly graph: (contract: string | undefined) => Graph<CallContext> | undefined;
  readonly feeds: Feeds<CallContext>;
  readonly documents: Documents;
  readonly usage: Pick<Usage, 'record'>;
  /** Of a query or mutation, in milliseconds. */
  readonly deadlineMs: number;
  readonly log: Logger;
}

/** An operation, as a client sends it. */
interface SentOperation extends Pick<GraphRequest<unknown>, 'variables' | 'operationName' | 'onlyQueries'> {
  readonly document: NamedDocument;
  /** What shows a part of the graph; undefined: all of it. */
  readonly contract?: string | undefined;
  /** What the client calls itself. */
  readonly client: string | undefined;
}

/** The same with its document. */
type AskedOperation = SentOperation & GraphOperation;

/**
 * Begins an operation of any kind, for transports on which answers come by themselves. The listener
 * hears what comes of it: of a query or mutation one answer; of what is refused only why.
 *
 * @returns what says that nobody listens any more.
 */
export type BeginOperation = (sent: SentOperation, listener: Listener<CallContext>) => () => void;

export function createOperations(deps: OperationsDeps): BeginOperation {
  const { graph, feeds, documents, usage, deadlineMs, log } = deps;
  return (sent, listener) => {
    const left = new AbortController();
    const { signal } = left;
    read(sent, listener, signal).catch((error: unknown) => {
      if (signal.aborted) return;
      listener.end([formatError(error, (err) => log.error({ err }, 'an operation failed'))]);
    });
    return () => left.abort(new Error('Nobody listens any more'));
  };

  async function read(sent: SentOperation, listener: Listener<CallContext>, signal: AbortSignal): Promise<void> {
    const query = await documents.read(sent.document);
    if (typeof query !== 'string') return listener.end(query.errors);
    // A subscription keeps its place when it goes on by another graph.
    const drawnPlace = drawPlace();
    await begin({ ...sent, query, caller: listener.context.caller, drawnPlace }, listener, signal);
  }

  async function begin(asked: AskedOperation, listener: Listener<CallContext>, signal: AbortSignal): Promise<void> {
    const { query, variables, operationName, caller, contract, drawnPlace } = asked;
    const inForce = graph(contract);
    if (inForce === undefined) throw federationError('NO_GRAPH');
    const planned = await inForce.subscription(asked);
    if (signal.aborted) return;
    if (planned === undefined) return execute(inForce, asked, { listener, signal });
    if (!('source' in planned)) return listener.end(planned.errors ?? []);
    // It would not hear of the graph that has come meanwhile.
    if (graph(contract) !== inForce) return begin(asked, listener, signal);
    const operation = { query, variables, operationName, caller, contract, drawnPlace };
    const leave = feeds.join({ key: keyOf(operation, listener.context), operation, planned }, listener);
    signal.addEventListener('abort', leave, { once: true });
    await taken(inForce, asked);
  }

  /** It was valid. */
  async function taken({ apiSchema: schema }: Graph<CallContext>, asked: AskedOperation): Promise<void> {
    const { query, operationName, client, document } = asked;
    usage.record({ query, operationName, client, schema });
    await documents.keep(document);
  }

  async function execute(
    inForce: Graph<CallContext>,
    asked: AskedOperation,
    { listener, signal }: { readonly listener: Listener<CallContext>; readonly signal: AbortSignal },
  ): Promise<void> {
    try {
      const request = { ...asked, context: listener.context };
      const answer = await withinTime(deadlineMs, signal, (limit) => inForce.execute(request, limit));
      signal.throwIfAborted();
      if (answer.data === undefined) return listener.end(answer.errors ?? []);
      await taken(inForce, asked);
      listener.next(JSON.stringify(answer));
      listener.end();
    } catch (error) {
      throw error instanceof LateError ? federationError('DEADLINE_EXCEEDED', { cause: error }) : error;
    }
  }
}

/** Pure. The same for subscriptions that bring the same. Of who is not known nobody knows that either. */
function keyOf({ query, variables, operationName, contract }: SubscribedOperation, { caller, headers }: CallContext) {
  if (caller === undefined) return undefined;
  const { subject, tier, scopes } = caller;
  const who = [subject, tier, [...scopes].toSorted(), untraced(headers)];
  return hash('sha256', JSON.stringify([who, contract, query, variables, operationName]));
}
