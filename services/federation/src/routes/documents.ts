import { commonError, invalidRequest } from '@rollcall/platform/common-errors.ts';
import { listQuery, pageOf } from '@rollcall/platform/http/lists.ts';
import { patternInWords } from '@rollcall/platform/http/patterns.ts';
import { noContent, pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { Type } from 'typebox';
import { publishing } from '../documents/publishing.ts';
import type { TrustedDocumentStore } from '../documents/trusted-documents.ts';
import { federationError, refusals } from '../errors.ts';
import { DOCUMENT_ID, LONGEST_QUERY } from './graphql-requests.ts';

const tags = ['documents'];
const MOST_AT_ONCE = 1000;

const Client = Type.String({
  ...patternInWords('^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$', 'must be a name of letters, digits and . _ -'),
  description: 'What the client is called',
});
const DocumentId = Type.String({ ...DOCUMENT_ID, description: 'The id of the document' });

const Published = Type.Object(
  {
    client: Client,
    documents: Type.Record(Type.String(DOCUMENT_ID), Type.String({ minLength: 1, maxLength: LONGEST_QUERY }), {
      minProperties: 1,
      maxProperties: MOST_AT_ONCE,
      additionalProperties: false,
      description: 'Documents by their ids',
    }),
  },
  strict,
);

const DocumentRecord = Type.Object({
  id: Type.String(),
  client: Type.String(),
  document: Type.String(),
  createdAt: Type.String({ format: 'date-time' }),
});

export interface DocumentDeps {
  readonly store: Pick<TrustedDocumentStore, 'publish' | 'list' | 'remove'>;
  /** As for what clients send. */
  readonly maxTokens: number;
}

/** Documents that clients may ask for by id. */
export function documentRoutes(deps: DocumentDeps): Routes {
  return (app) => {
    publishingRoutes(deps)(app);
    removingRoutes(deps)(app);
  };
}

function publishingRoutes({ store, maxTokens }: DocumentDeps): Routes {
  return (app) => {
    app.post(
      '/documents',
      {
        schema: {
          tags,
          summary: 'Publish documents of a client, all or none; those that are known stay as they are',
          body: Published,
          response: {
            200: Type.Object({
              client: Type.String(),
              published: Type.Integer({ description: 'How many are new' }),
              known: Type.Integer({ description: 'How many the client had already' }),
            }),
          },
        },
        config: { refuses: refusals('DOCUMENT_CONFLICT') },
      },
      async ({ body: { client, documents: texts } }) => {
        const { documents, faults } = publishing(texts, maxTokens);
        if (faults.length > 0) throw invalidRequest(faults);
        const published = await store.publish(client, documents);
        if (typeof published !== 'number')
          throw federationError('DOCUMENT_CONFLICT', { details: { ids: [...published] } });
        return { client, published, known: documents.length - published };
      },
    );
    app.get(
      '/documents',
      {
        schema: {
          tags,
          summary: 'List the documents that were published, newest first',
          querystring: Type.Object({ client: Type.Optional(Client), ...listQuery }, strict),
          response: { 200: Type.Object({ documents: Type.Array(DocumentRecord), ...pageAnswer }) },
        },
      },
      async ({ query }) => {
        const page = pageOf(query);
        const { rows, total, nextCursor } = await store.list(page, query.client);
        const documents = rows.map(({ createdAt, ...row }) => ({ ...row, createdAt: createdAt.toISOString() }));
        return { documents, total, limit: page.limit, offset: page.offset, nextCursor };
      },
    );
  };
}

function removingRoutes({ store }: DocumentDeps): Routes {
  const remove = async (client: string, id: string | undefined): Promise<void> => {
    if ((await store.remove(client, id)) === 0)
      throw commonError('NOT_FOUND', { message: 'No such document was published' });
  };
  return (app) => {
    app.delete(
      '/documents/:client',
      {
        schema: {
          tags,
          summary: 'Remove all documents of a client',
          params: Type.Object({ client: Client }),
          response: noContent,
        },
      },
      async ({ params }, reply) => {
        await remove(params.client, undefined);
        return reply.status(204).send(null);
      },
    );
    app.delete(
      '/documents/:client/:id',
      {
        schema: {
          tags,
          summary: 'Remove a document of a client',
          params: Type.Object({ client: Client, id: DocumentId }),
          response: noContent,
        },
      },
      async ({ params }, reply) => {
        await remove(params.client, params.id);
        return reply.status(204).send(null);
      },
    );
  };
}
