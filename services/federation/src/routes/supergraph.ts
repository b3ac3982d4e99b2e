import { commonError } from '@rollcall/platform/common-errors.ts';
import { listQuery, pageOf } from '@rollcall/platform/http/lists.ts';
import { found, noContent, pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { Type } from 'typebox';
import type { GraphStore } from '../domain/ports.ts';

const tags = ['schemas'];
const SDL_TYPE = 'application/graphql; charset=utf-8';

const GenerationEntry = Type.Object({
  generation: Type.Integer({ description: 'One more than that of the graph before' }),
  hash: Type.String({ description: 'SHA-256 of the SDL' }),
  subgraphs: Type.Record(Type.String(), Type.String(), { description: 'The hash of the SDL of each service' }),
  createdAt: Type.String({ format: 'date-time' }),
});

export interface SupergraphDeps {
  readonly store: Pick<GraphStore, 'generation' | 'history' | 'pin' | 'unpin' | 'pinned'>;
  /** Takes the graph in force, so that whoever changed it finds it. */
  readonly adopt: () => Promise<void>;
}

const Pin = Type.Object(
  { generation: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Of the history' }) },
  strict,
);

/** The graph in force, and those before it. */
export function supergraphRoutes(deps: SupergraphDeps): Routes {
  return (app) => {
    readingRoutes(deps)(app);
    pinningRoutes(deps)(app);
  };
}

function readingRoutes({ store }: SupergraphDeps): Routes {
  return (app) => {
    app.get(
      '/schemas/supergraph',
      {
        schema: {
          tags,
          summary: 'Read the SDL of the graph in force',
          headers: Type.Object({
            'if-none-match': Type.Optional(
              Type.String({ description: 'ETags of earlier answers; 304 where one is good' }),
            ),
          }),
          response: {
            200: { description: 'SDL', content: { 'application/graphql': { schema: Type.String() } } },
            304: Type.Null({ description: 'It is the same' }),
          },
        },
      },
      async (request, reply) => {
        const { supergraph, hash, number } = found(await store.generation());
        const etag = `"${number}-${hash}"`;
        reply.header('etag', etag).header('cache-control', 'no-cache');
        if (isKnown(request.headers['if-none-match'], etag)) return reply.status(304).send(null);
        return reply.type(SDL_TYPE).serializer(String).send(supergraph);
      },
    );
    app.get(
      '/schemas/history',
      {
        schema: {
          tags,
          summary: 'List the graphs that have been in force, the newest first',
          querystring: Type.Object({ ...listQuery }, strict),
          response: {
            200: Type.Object({
              generations: Type.Array(GenerationEntry),
              pinned: Type.Union([Type.Integer(), Type.Null()], {
                description: 'The graph that is in force until it is let go of; null: the newest is',
              }),
              ...pageAnswer,
            }),
          },
        },
      },
      async ({ query }) => {
        const page = pageOf(query);
        const [{ rows, total, nextCursor }, pinned] = await Promise.all([store.history(page), store.pinned()]);
        const generations = rows.map(({ number, hash, subgraphs, createdAt }) => ({
          generation: number,
          hash,
          subgraphs: { ...subgraphs },
          createdAt: createdAt.toISOString(),
        }));
        return { generations, pinned: pinned ?? null, total, limit: page.limit, offset: page.offset, nextCursor };
      },
    );
  };
}

function pinningRoutes({ store, adopt }: SupergraphDeps): Routes {
  return (app) => {
    app.put(
      '/schemas/supergraph/pin',
      {
        schema: {
          tags,
          summary: 'Put an earlier graph in force, until it is let go of; answered once it is',
          body: Pin,
          response: noContent,
        },
      },
      async ({ body }, reply) => {
        if (!(await store.pin(body.generation)))
          throw commonError('NOT_FOUND', { message: 'The history has no graph of this number' });
        await adopt();
        return reply.status(204).send(null);
      },
    );
    app.delete(
      '/schemas/supergraph/pin',
      { schema: { tags, summary: 'Put the newest graph in force', response: noContent } },
      async (_request, reply) => {
        await store.unpin();
        await adopt();
        return reply.status(204).send(null);
      },
    );
  };
}

/** If-None-Match compares weakly (RFC 9110, section 13.1.2). */
function isKnown(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((each) => ['*', etag].includes(each.trim().replace(/^W\//, '')));
}
