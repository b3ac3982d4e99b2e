import { listQuery, pageOf } from '@rollcall/platform/http/lists.ts';
import { patternInWords } from '@rollcall/platform/http/patterns.ts';
import { pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { Type } from 'typebox';
import type { UsageStore } from '../domain/ports.ts';
import { UsedOperationAnswer, usedOperationOf } from './schema-answers.ts';

const Query = Type.Object(
  {
    coordinate: Type.Optional(
      Type.String({
        ...patternInWords(String.raw`^\w+(\.\w+(\(\w+:\))?)?$`, 'must be a name such as User.name or Color.RED'),
        maxLength: 512,
        description: 'Only operations that use it: `User.name`, `User.posts(first:)`, `Color.RED` or `UserInput`',
      }),
    ),
    ...listQuery,
  },
  strict,
);

/** What clients do with the graph. */
export function usageRoutes(store: Pick<UsageStore, 'list'>): Routes {
  return (app) => {
    app.get(
      '/schemas/usage',
      {
        schema: {
          tags: ['schemas'],
          summary: 'List the operations that clients executed, the newest first',
          querystring: Query,
          response: { 200: Type.Object({ operations: Type.Array(UsedOperationAnswer), ...pageAnswer }) },
        },
      },
      async ({ query }) => {
        const page = pageOf(query);
        const { rows, total, nextCursor } = await store.list(page, query.coordinate);
        return { operations: rows.map(usedOperationOf), total, limit: page.limit, offset: page.offset, nextCursor };
      },
    );
  };
}
