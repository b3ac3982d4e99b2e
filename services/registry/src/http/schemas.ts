import { documented, memberRules } from '@rollcall/platform/http/documented.ts';
import { httpUrlRules, serviceNameRules, serviceUrlRules } from '@rollcall/platform/service-address.ts';
import { Type } from 'typebox';
import type { ErrorCode } from '../common/errors.ts';
import { limitRules } from '../common/limit.ts';
import { detailNameRules, printableRules } from '../common/validation.ts';

/** Contract 1, "Errors". */
const ErrorResponse = Type.Object(
  {
    error: Type.String({ description: 'Error type' }),
    message: Type.String({ description: 'What is wrong with this request' }),
  },
  { $id: 'Error' },
);

/** What the document names, and refers to. */
export const components = {
  Error: { ...ErrorResponse },
  ServiceUrl: { ...Type.String(documented(serviceUrlRules)) },
  HttpUrl: { ...Type.String(documented(httpUrlRules)) },
  Printable: {
    description: 'JSON without control characters in texts and names',
    ...documented({
      anyOf: [
        { type: 'string', ...printableRules },
        { type: ['number', 'boolean', 'null'] },
        { type: 'array', items: { $ref: '#/components/schemas/Printable' } },
        {
          type: 'object',
          propertyNames: { ...detailNameRules, ...memberRules },
          additionalProperties: { $ref: '#/components/schemas/Printable' },
        },
      ],
    }),
  },
};

/** @returns rules for the document, of which it has a name. */
export function named(name: keyof typeof components): { readonly $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

/** A `service_name` in a body or path. */
export const ServiceName = Type.String({
  description:
    "Unique name: 1 to 253 characters, no ':', '/' or backslash, no white space, no invisible or control characters",
  ...documented(serviceNameRules),
});

/** ISO 8601 with offset. */
export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601 with offset' });

/**
 * `2026-11-20T17:00:00.000+00:00`: ISO 8601 with a numeric offset, as the contract's records have
 * it.
 */
export function timestamp(date: Date): string {
  return date.toISOString().replace('Z', '+00:00');
}

/** Of a list, as it stands in the query. */
export const Limit = Type.String({
  description: 'Most entries to return: an integer from 1 to 1000, 100 by default',
  ...documented(limitRules),
});

/** What asks whether the caller's copy is still good. */
export const ConditionalHeaders = Type.Object({
  'if-none-match': Type.Optional(
    Type.String({ description: 'ETags of earlier answers; 304 where one of them is good' }),
  ),
});

const VALIDATORS = {
  ETag: {
    type: 'string',
    pattern: '^W/"[\\w-]+"$',
    description: 'Of what the answer says; the same at every replica',
  },
  'Cache-Control': { type: 'string', enum: ['no-cache'] },
};

/** The answers of a route that sends a validator. */
export function conditional<T extends Type.TSchema>(schema: T) {
  return {
    200: { description: 'As it is now', headers: VALIDATORS, content: { 'application/json': { schema } } },
    304: { type: 'null', description: 'The caller has it already', headers: VALIDATORS },
  } as const;
}

/** What resumes a stream. */
export const StreamHeaders = Type.Object({
  'last-event-id': Type.Optional(Type.String({ description: 'The last id of a stream before; another is ignored' })),
});

/** What keeps a stream from being opened. */
export const STREAM_REFUSALS = [
  'TOO_MANY_STREAMS',
  'STREAM_SHARE_USED',
  'STOPPING',
] as const satisfies readonly ErrorCode[];
