import { strict } from '@rollcall/platform/http/resources.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { Type } from 'typebox';
import { federationError, refusals } from '../errors.ts';
import type { Graph } from '../execution/graph.ts';
import type { InForce } from '../graphs/current.ts';
import { LONGEST_QUERY } from './graphql-requests.ts';

const Body = Type.Object(
  {
    query: Type.String({ minLength: 1, maxLength: LONGEST_QUERY, description: 'The document' }),
    variables: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    operationName: Type.Optional(Type.String({ maxLength: 256, description: 'Which of several operations' })),
  },
  strict,
);

const Explained = Type.Object({
  generation: Type.Integer({ description: 'Of the graph in force' }),
  cost: Type.Union([Type.Number(), Type.Null()], { description: 'As it is estimated; null: it is refused' }),
  plan: Type.Unknown({
    description:
      'Steps: `{kind: sequence | parallel, steps}` or `{kind: fetch, service, operation, entities, query}`; ' +
      'null: no service is asked',
  }),
  errors: Type.Array(Type.Unknown(), {
    description: 'What the operation is refused with, or what of it the caller does not get',
  }),
});

/** How operations would be carried out. */
export function explainRoutes<Context>(graph: () => InForce<Graph<Context>> | undefined): Routes {
  return (app) => {
    app.post(
      '/schemas/explain',
      {
        schema: {
          tags: ['schemas'],
          summary: 'Say how an operation would be carried out; no service is asked',
          body: Body,
          response: { 200: Explained },
        },
        config: { refuses: refusals('NO_GRAPH') },
      },
      async ({ body, caller }) => {
        const inForce = graph();
        if (inForce === undefined) throw federationError('NO_GRAPH');
        const { number: generation } = inForce;
        const result = await inForce.graph.explain({ ...body, caller });
        const errors = [...(result.errors ?? [])];
        if ('cost' in result) return { generation, cost: result.cost, plan: result.plan ?? null, errors };
        return { generation, cost: null, plan: null, errors };
      },
    );
  };
}
