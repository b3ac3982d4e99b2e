import { listQuery, pageOf } from '@rollcall/platform/http/lists.ts';
import { found, pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
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

/** The graph in force, and those before it. */
export function supergraphRoutes(store: Pick<GraphStore, 'generation' | 'history'>): Routes {
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
          response: { 200: Type.Object({ generations: Type.Array(GenerationEntry), ...pageAnswer }) },
        },
      },
      async ({ query }) => {
        const page = pageOf(query);
        const { rows, total, nextCursor } = await store.history(page);
        const generations = rows.map(({ number, hash, subgraphs, createdAt }) => ({
          generation: number,
          hash,
          subgraphs: { ...subgraphs },
          createdAt: createdAt.toISOString(),
        }));
        return { generations, total, limit: page.limit, offset: page.offset, nextCursor };
      },
    );
  };
}

/** If-None-Match compares weakly (RFC 9110, section 13.1.2). */
function isKnown(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((each) => ['*', etag].includes(each.trim().replace(/^W\//, '')));
}
