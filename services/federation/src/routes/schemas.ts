import { invalidRequest } from '@rollcall/platform/common-errors.ts';
import { documented } from '@rollcall/platform/http/documented.ts';
import { noContent, strict } from '@rollcall/platform/http/resources.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { httpUrlFault, httpUrlRules, serviceNameFault, serviceNameRules } from '@rollcall/platform/service-address.ts';
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import type { Schemas } from '../domain/schemas.ts';
import { refusals } from '../errors.ts';
import { CheckAnswer, CompositionAnswer, checkOf, compositionOf, recordOf, schemaRecord } from './schema-answers.ts';

const tags = ['schemas'];
/** As long as a schema that is read. */
const LONGEST_SCHEMA = 1024 * 1024;

const ServiceName = Type.String({ description: 'The name of the service', ...documented(serviceNameRules) });

const Introspection = Type.Object(
  {
    serviceUrl: Type.String({ description: 'URL of the GraphQL of a service', ...documented(httpUrlRules) }),
    name: Type.Optional(ServiceName),
  },
  strict,
);

const Check = Type.Object(
  {
    service: ServiceName,
    schema: Type.String({ minLength: 1, maxLength: LONGEST_SCHEMA, description: 'SDL that the service is to have' }),
  },
  strict,
);

const SchemaRecord = Type.Object(schemaRecord);
const Introspected = Type.Object({ ...schemaRecord, composition: CompositionAnswer });
const Failed = Type.Object({ service: Type.String(), code: Type.String(), message: Type.String() });

/** Schemas of services: read, added, removed. */
export function schemaRoutes(schemas: Schemas): Routes {
  return (app) => {
    readingRoutes(schemas)(app);
    changingRoutes(schemas)(app);
  };
}

function readingRoutes(schemas: Schemas): Routes {
  return (app) => {
    app.get(
      '/schemas',
      {
        schema: {
          tags,
          summary: 'List the schemas of services',
          response: { 200: Type.Object({ schemas: Type.Array(SchemaRecord) }) },
        },
      },
      async () => ({ schemas: (await schemas.list()).map(recordOf) }),
    );
    app.post(
      '/schemas/check',
      {
        schema: {
          tags,
          summary:
            'Say whether a schema composes with the others, and what of clients it would break; nothing is changed',
          body: Check,
          response: { 200: CheckAnswer },
        },
      },
      async ({ body: { service, schema } }) => {
        requireSound({ service: serviceNameFault(service) });
        return checkOf(service, await schemas.check(service, schema));
      },
    );
  };
}

function changingRoutes(schemas: Schemas): Routes {
  return (app) => {
    app.post(
      '/schemas/introspect',
      {
        schema: {
          tags,
          summary: 'Read the schema of a service; answered once the graph is in force that came of it',
          body: Introspection,
          response: { 200: Introspected },
        },
        config: { refuses: refusals('URL_NOT_ALLOWED', 'INTROSPECTION_FAILED') },
      },
      async ({ body: { serviceUrl, name } }, reply) => {
        requireSound({
          serviceUrl: httpUrlFault(serviceUrl),
          name: name === undefined ? name : serviceNameFault(name),
        });
        const subgraph = await schemas.introspect(serviceUrl, name, leavingOf(reply));
        return { ...recordOf(subgraph), composition: compositionOf(subgraph.errors) };
      },
    );
    app.post(
      '/schemas/refresh',
      {
        schema: {
          tags,
          summary: 'Read all schemas anew',
          response: {
            200: Type.Object({
              refreshed: Type.Array(Type.String()),
              failed: Type.Array(Failed),
              schemas: Type.Array(SchemaRecord),
            }),
          },
        },
      },
      async (_request, reply) => {
        const { refreshed, failed, known } = await schemas.refresh(leavingOf(reply));
        return { refreshed: [...refreshed], failed: [...failed], schemas: known.map(recordOf) };
      },
    );
    app.delete(
      '/schemas/:service',
      {
        schema: {
          tags,
          summary: 'Take a service out of the graph; one that is registered until it registers anew',
          params: Type.Object({ service: ServiceName }),
          response: noContent,
        },
      },
      async ({ params }, reply) => {
        await schemas.remove(params.service);
        return reply.status(204).send(null);
      },
    );
  };
}

/** @throws ServiceError INVALID_REQUEST with all faults, by the members of the body. */
function requireSound(faults: Readonly<Record<string, string | undefined>>): void {
  const fields = Object.entries(faults).flatMap(([name, message]) =>
    message === undefined ? [] : [{ path: `body/${name}`, message }],
  );
  if (fields.length > 0) throw invalidRequest(fields);
}

/** Aborts when the caller has left. */
function leavingOf({ raw }: FastifyReply): AbortSignal {
  const left = new AbortController();
  raw.once('close', () => left.abort(new Error('The caller has left')));
  return left.signal;
}
