import type { ReadCaller } from '@rollcall/platform/http/callers.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { LateError, withinTime } from '@rollcall/platform/within-time.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Documents } from '../documents/documents.ts';
import { federationError, refusals } from '../errors.ts';
import type { Graph, GraphAnswer } from '../execution/graph.ts';
import type { InForce } from '../graphs/current.ts';
import type { CallContext } from '../subgraphs/call-subgraph.ts';
import type { AnswerHeaders } from '../subgraphs/headers/answer-headers.ts';
import type { Fields } from '../subgraphs/headers/follow.ts';
import type { PassedHeaders } from '../subgraphs/headers/passed-headers.ts';
import { shownCaller } from '../subgraphs/identities.ts';
import type { Usage } from '../usage/usage.ts';
import type { GraphqlEvents } from './graphql-events.ts';
import {
  clientNameOf,
  codeOf,
  EVENT_STREAM_TYPE,
  hasPreflight,
  mediaTypeFor,
  RESPONSE_TYPE,
  statusOf,
} from './graphql-over-http.ts';
import {
  type Asked,
  askedByGet,
  askedByPost,
  BODY_LIMIT_BYTES,
  GraphqlPost,
  GraphqlQuery,
} from './graphql-requests.ts';

export interface GraphqlDeps {
  /** The graph in force, or what a contract shows of it; undefined: none. @throws ServiceError NOT_FOUND. */
  readonly graph: (contract?: string) => InForce<Graph<CallContext>> | undefined;
  readonly readCaller: ReadCaller;
  readonly passed: Pick<PassedHeaders, 'carried' | 'collect'>;
  readonly usage: Pick<Usage, 'record'>;
  readonly documents: Documents;
  readonly events: GraphqlEvents;
  /** For a request that is answered once, in milliseconds. */
  readonly deadlineMs: number;
  /** Most operations of a request. */
  readonly batchSize: number;
}

const Members = Type.Record(Type.String(), Type.Unknown());

const Answer = Type.Object(
  {
    data: Type.Optional(Type.Union([Members, Type.Null()])),
    errors: Type.Optional(Type.Array(Members)),
    extensions: Type.Optional(Members),
  },
  { description: 'As the specification of GraphQL has it', additionalProperties: true },
);

const Events = Type.String({ description: '`next` with an answer for each event, then `complete` (graphql-sse)' });

const answers = {
  tags: ['graphql'],
  response: {
    200: {
      description: 'Executed',
      content: {
        'application/json': { schema: Type.Union([Answer, Type.Array(Answer)]) },
        [RESPONSE_TYPE]: { schema: Answer },
        [EVENT_STREAM_TYPE]: { schema: Events },
      },
    },
  },
};

const byPost = {
  bodyLimit: BODY_LIMIT_BYTES,
  config: { refuses: refusals('BATCH_LIMIT_EXCEEDED', 'NO_GRAPH', 'DEADLINE_EXCEEDED', 'TOO_MANY_SUBSCRIPTIONS') },
};
const byGet = {
  config: {
    refuses: refusals('CSRF_GUARD', 'MUTATION_BY_GET', 'NO_GRAPH', 'DEADLINE_EXCEEDED', 'TOO_MANY_SUBSCRIPTIONS'),
  },
};
const schemas = {
  post: { ...answers, summary: 'Execute an operation', body: GraphqlPost },
  get: { ...answers, summary: 'Execute a query', querystring: GraphqlQuery },
};

interface Sent {
  readonly status: number;
  readonly type: string;
  /** Of several operations all, in their order. */
  readonly executed: GraphAnswer | readonly GraphAnswer[];
  /** Of services. */
  readonly fields: Fields | undefined;
}

/** An operation of a request. */
interface Executing {
  readonly request: FastifyRequest;
  readonly asked: Asked;
  /** Of the request. */
  readonly answered: AnswerHeaders | undefined;
}

/** GraphQL over HTTP. Whose data a caller gets is for each service to decide. */
export function graphqlRoutes(deps: GraphqlDeps): Routes {
  const { graph, readCaller, passed, usage, documents, events, deadlineMs, batchSize } = deps;

  async function execute({ request, asked, answered }: Executing, signal: AbortSignal): Promise<GraphAnswer> {
    const caller = await readCaller(request);
    const inForce = graph(asked.contract);
    if (inForce === undefined) throw federationError('NO_GRAPH');
    const { document, contract: _contract, ...rest } = asked;
    const query = await documents.read(document);
    if (typeof query !== 'string') return query;
    const { headers } = request;
    const context = { headers: passed.carried(headers), caller: shownCaller(headers, caller), answered };
    const reportsCost = headers['graphql-cost'] === 'report';
    const answer = await inForce.graph.execute({ ...rest, query, context, caller, reportsCost }, signal);
    if (codeOf(answer) === 'MUTATION_BY_GET') throw federationError('MUTATION_BY_GET', { headers: { allow: 'POST' } });
    // Without data it was refused.
    if (answer.data === undefined) return answer;
    const client = clientNameOf(headers);
    usage.record({ query, operationName: asked.operationName, client, schema: inForce.graph.apiSchema });
    await documents.keep(document);
    return answer;
  }

  async function answer(request: FastifyRequest, reply: FastifyReply, asked: Asked): Promise<void> {
    const type = mediaTypeFor(request.headers.accept);
    if (type === EVENT_STREAM_TYPE) return events.answer(request, reply, asked);
    await send(reply, deadlineMs, async (signal) => {
      const answered = passed.collect();
      const executed = await execute({ request, asked, answered }, signal);
      return { status: statusOf(executed, type), type, executed, fields: answered?.merged(isWhole(executed)) };
    });
  }

  /** All at once, as whoever sends them together does not wait for one to send the next. */
  async function answerBatch(request: FastifyRequest, reply: FastifyReply, batch: readonly Asked[]): Promise<void> {
    if (batchSize === 1 || batch.length > batchSize)
      throw federationError('BATCH_LIMIT_EXCEEDED', { details: { limit: batchSize } });
    await send(reply, deadlineMs, async (signal) => {
      const answered = passed.collect();
      const executed = await Promise.all(batch.map((asked) => execute({ request, asked, answered }, signal)));
      return { status: 200, type: 'application/json', executed, fields: answered?.merged(executed.every(isWhole)) };
    });
  }

  async function answerPost(
    request: FastifyRequest,
    reply: FastifyReply,
    { body, contract }: { readonly body: Static<typeof GraphqlPost>; readonly contract?: string },
  ): Promise<void> {
    const asked = (each: Parameters<typeof askedByPost>[0], where: string): Asked => ({
      ...askedByPost(each, where),
      ...(contract === undefined ? {} : { contract }),
    });
    await (Array.isArray(body)
      ? answerBatch(
          request,
          reply,
          body.map((each, index) => asked(each, `body/${index}`)),
        )
      : answer(request, reply, asked(body, 'body')));
  }

  async function answerGet(request: FastifyRequest, reply: FastifyReply, asked: Asked): Promise<void> {
    if (!hasPreflight(request.headers)) throw federationError('CSRF_GUARD');
    await answer(request, reply, asked);
  }

  return (app) => {
    app.post('/graphql', { ...byPost, schema: schemas.post }, async (request, reply) =>
      answerPost(request, reply, { body: request.body }),
    );
    app.get('/graphql', { ...byGet, schema: schemas.get }, async (request, reply) =>
      answerGet(request, reply, askedByGet(request.query)),
    );
    const params = Type.Object({ contract: Type.String({ description: 'A part of the graph' }) });
    app.post('/graphql/:contract', { ...byPost, schema: { ...schemas.post, params } }, async (request, reply) =>
      answerPost(request, reply, { body: request.body, ...request.params }),
    );
    app.get('/graphql/:contract', { ...byGet, schema: { ...schemas.get, params } }, async (request, reply) =>
      answerGet(request, reply, { ...askedByGet(request.query), ...request.params }),
    );
  };
}

function isWhole({ errors }: GraphAnswer): boolean {
  return errors === undefined;
}

/** Nothing is sent to who has left. @throws ServiceError DEADLINE_EXCEEDED; what `make` throws. */
async function send(
  reply: FastifyReply,
  deadlineMs: number,
  make: (signal: AbortSignal) => Promise<Sent>,
): Promise<void> {
  const left = new AbortController();
  const onClose = () => left.abort(new Error('The caller has left'));
  reply.raw.once('close', onClose);
  try {
    const { status, type, executed, fields = {} } = await withinTime(deadlineMs, left.signal, make);
    await reply.headers(fields).status(status).type(`${type}; charset=utf-8`).serializer(JSON.stringify).send(executed);
  } catch (error) {
    if (left.signal.aborted) {
      reply.hijack();
      return;
    }
    if (error instanceof LateError) throw federationError('DEADLINE_EXCEEDED', { cause: error });
    throw error;
  } finally {
    reply.raw.off('close', onClose);
  }
}
