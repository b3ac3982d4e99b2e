import { invalidRequest } from '@rollcall/platform/common-errors.ts';
import { patternInWords } from '@rollcall/platform/http/patterns.ts';
import { strict } from '@rollcall/platform/http/resources.ts';
import { fieldsOf } from '@rollcall/platform/http/schema-faults.ts';
import { type Static, type TSchema, Type } from 'typebox';
import { Value } from 'typebox/value';
import type { NamedDocument } from '../documents/documents.ts';

/** Queries of people and of programs are far smaller. */
export const LONGEST_QUERY = 15_000;
/** Of a request. */
const MOST_OPERATIONS = 10;
/** Of the id of a document. */
export const DOCUMENT_ID = patternInWords('^[A-Za-z0-9._:-]{1,128}$', 'must be an id of letters, digits and . _ : -');
/** Variables have most of it. Large bodies would have to wait for their turn. */
export const BODY_LIMIT_BYTES = 512 * 1024;

const query = Type.String({
  minLength: 1,
  maxLength: LONGEST_QUERY,
  description: 'The document; needed unless documentId or extensions.persistedQuery names it',
});
const documentId = Type.String({
  ...DOCUMENT_ID,
  description: 'Names a document that was published; instead of query',
});
const operationName = Type.String({
  maxLength: 256,
  description: 'Which operation of the document, where it has several',
});
const Members = Type.Record(Type.String(), Type.Unknown());
const Extensions = Type.Object(
  {
    persistedQuery: Type.Optional(
      Type.Object(
        {
          version: Type.Literal(1),
          sha256Hash: Type.String({
            ...patternInWords('^[0-9a-f]{64}$', 'must be a SHA-256 in lower-case hexadecimal digits'),
            description: 'SHA-256 of the document',
          }),
        },
        { description: "Names the document, as Apollo's automatic persisted queries do" },
      ),
    ),
  },
  { description: 'Others are not used', additionalProperties: true },
);

/** An operation, as POST and messages have it. */
export const GraphqlBody = Type.Object(
  {
    query: Type.Optional(query),
    documentId: Type.Optional(documentId),
    variables: Type.Optional(Type.Union([Members, Type.Null()])),
    operationName: Type.Optional(Type.Union([operationName, Type.Null()])),
    extensions: Type.Optional(Type.Union([Extensions, Type.Null()])),
  },
  strict,
);

/** The body of POST. */
export const GraphqlPost = Type.Union([
  GraphqlBody,
  Type.Array(GraphqlBody, {
    minItems: 1,
    maxItems: MOST_OPERATIONS,
    description: 'Several operations, where that is allowed; answered by a list',
  }),
]);

const object = Type.String({ maxLength: LONGEST_QUERY, description: 'A JSON object' });

/** The query of GET. */
export const GraphqlQuery = Type.Object(
  {
    query: Type.Optional(query),
    documentId: Type.Optional(documentId),
    variables: Type.Optional(object),
    operationName: Type.Optional(operationName),
    extensions: Type.Optional(object),
  },
  strict,
);

/** What a client asks for. */
export interface Asked {
  readonly document: NamedDocument;
  readonly variables: Readonly<Record<string, unknown>> | undefined;
  readonly operationName: string | undefined;
  /** By GET. */
  readonly onlyQueries: boolean;
  /** What shows a part of the graph; undefined: all of it. */
  readonly contract?: string;
}

/** Pure. @param where it is in the request. @throws ServiceError INVALID_REQUEST where there is no document. */
export function askedByPost(
  { variables, operationName, extensions, ...named }: Static<typeof GraphqlBody>,
  where = 'body',
): Asked {
  return {
    document: documentOf(where, named, extensions ?? undefined),
    variables: variables ?? undefined,
    operationName: operationName ?? undefined,
    onlyQueries: false,
  };
}

/** Pure. @throws ServiceError INVALID_REQUEST where there is no document, or texts are no JSON objects. */
export function askedByGet({ variables, operationName, extensions, ...named }: Static<typeof GraphqlQuery>): Asked {
  return {
    document: documentOf('query', named, objectIn('extensions', extensions, Extensions)),
    variables: objectIn('variables', variables, Members),
    operationName,
    onlyQueries: true,
  };
}

function documentOf(
  where: string,
  { query, documentId: id }: { readonly query?: string; readonly documentId?: string },
  extensions: Static<typeof Extensions> | undefined,
): NamedDocument {
  const hash = extensions?.persistedQuery?.sha256Hash;
  if (query === undefined && hash === undefined && id === undefined)
    throw invalidRequest([{ path: `${where}/query`, message: 'is required' }]);
  if (id !== undefined && (query !== undefined || hash !== undefined))
    throw invalidRequest([{ path: `${where}/documentId`, message: 'must not be there with another document' }]);
  return { id, query, hash };
}

function objectIn<Schema extends TSchema>(
  name: string,
  text: string | undefined,
  schema: Schema,
): Static<Schema> | undefined {
  if (text === undefined || text === '') return undefined;
  const value = parsed(text);
  if (value === null) return undefined;
  const path = `query/${name}`;
  if (typeof value !== 'object' || Array.isArray(value))
    throw invalidRequest([{ path, message: 'must be a JSON object' }]);
  if (Value.Check(schema, value)) return value;
  throw invalidRequest(fieldsOf(Value.Errors(schema, value), path, schema));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
