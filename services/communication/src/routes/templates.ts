import { commonError } from '@rollcall/platform/common-errors.ts';
import { callerOf } from '@rollcall/platform/http/callers.ts';
import { pageOf } from '@rollcall/platform/http/lists.ts';
import { found, noContent } from '@rollcall/platform/http/resources.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { mailOf, type Templates } from '../domain/templates/catalogue.ts';
import { withUnsubscribeLink } from '../domain/unsubscribe.ts';
import { errorCatalogue } from '../errors.ts';
import {
  OwnerQuery,
  PreviewBody,
  PreviewResponse,
  summaryRecord,
  TemplateBody,
  TemplateParams,
  TemplateQuery,
  TemplateRecord,
  TemplatesQuery,
  TemplatesResponse,
  templateRecord,
  VersionsResponse,
} from '../schemas/templates.ts';
import type { CountCall } from './call-limits.ts';
import { ownerOf } from './owner.ts';
import { etagOf, isExpected, PreconditionHeaders } from './preconditions.ts';

const tags = ['templates'];
/** Mail programs cut off what is longer than 102 kB; this is for several languages. */
const BODY_LIMIT_BYTES = 512 * 1024;
const { PRECONDITION_FAILED, RATE_LIMITED, TEMPLATE_VARIABLES, TOO_MANY_TEMPLATES } = errorCatalogue;

export interface TemplateRoutesDeps {
  readonly templates: Templates;
  readonly countCall: CountCall;
  /** That previews of marketing mails show. */
  readonly exampleUrl: string;
}

/** `/templates`. */
export function templateRoutes(deps: TemplateRoutesDeps): Routes {
  const { templates, countCall, exampleUrl } = deps;
  return (app) => {
    readRoutes(app, templates);
    versionRoutes(app, templates);
    writeRoutes(app, deps);
    app.post(
      '/templates/:name/preview',
      {
        bodyLimit: BODY_LIMIT_BYTES,
        config: { refuses: [TEMPLATE_VARIABLES, RATE_LIMITED] },
        schema: {
          tags,
          summary: 'See the mail that a template becomes, without sending it',
          params: TemplateParams,
          querystring: OwnerQuery,
          body: PreviewBody,
          response: { 200: PreviewResponse },
        },
      },
      async (request, reply) => {
        reply.headers(await countCall('preview', callerOf(request).subject));
        const { version, variables = {}, locale, category } = request.body;
        const key = { subject: ownerOf(request, 'templates'), name: request.params.name };
        const template = found(await templates.find(key, version));
        const unsubscribeUrl = category === 'marketing' ? exampleUrl : undefined;
        const reader = { variables, unsubscribeUrl, ...(locale !== undefined && { locale }) };
        const mail = mailOf(template, reader, 'body');
        return {
          name: template.name,
          version: template.version,
          ...(unsubscribeUrl === undefined
            ? mail
            : withUnsubscribeLink(mail, { url: unsubscribeUrl, locale: mail.locale })),
        };
      },
    );
  };
}

function readRoutes(app: App, templates: Templates): void {
  app.get(
    '/templates',
    {
      schema: {
        tags,
        summary: 'List templates, newest first; those that are built in come last',
        querystring: TemplatesQuery,
        response: { 200: TemplatesResponse },
      },
    },
    async (request) => {
      const page = pageOf(request.query);
      const { rows, total, nextCursor } = await templates.list(ownerOf(request, 'templates'), page);
      return { templates: rows.map(summaryRecord), total, limit: page.limit, offset: page.offset, nextCursor };
    },
  );
  app.get(
    '/templates/:name',
    {
      schema: {
        tags,
        summary: 'Get a template as its author wrote it',
        params: TemplateParams,
        querystring: TemplateQuery,
        response: { 200: TemplateRecord },
      },
    },
    async (request, reply) => {
      const { version } = request.query;
      const key = { subject: ownerOf(request, 'templates'), name: request.params.name };
      const template = found(await templates.find(key, version === undefined ? undefined : Number(version)));
      reply.header('etag', etagOf(template.version));
      return templateRecord(template);
    },
  );
}

function versionRoutes(app: App, templates: Templates): void {
  app.get(
    '/templates/:name/versions',
    {
      schema: {
        tags,
        summary: 'Versions that can be read by their numbers, newest first: at most 50, and the built-in one',
        params: TemplateParams,
        querystring: OwnerQuery,
        response: { 200: VersionsResponse },
      },
    },
    async (request) => {
      const versions = await templates.versions({ subject: ownerOf(request, 'templates'), name: request.params.name });
      if (versions.length === 0) throw commonError('NOT_FOUND');
      return { versions: versions.map(({ version, createdAt }) => ({ version, createdAt: createdAt.toISOString() })) };
    },
  );
}

function writeRoutes(app: App, { templates, countCall }: TemplateRoutesDeps): void {
  app.put(
    '/templates/:name',
    {
      bodyLimit: BODY_LIMIT_BYTES,
      config: { refuses: [PRECONDITION_FAILED, TOO_MANY_TEMPLATES, RATE_LIMITED] },
      schema: {
        tags,
        summary: 'Publish a template: a new version, unless the newest says the same',
        headers: PreconditionHeaders,
        params: TemplateParams,
        querystring: OwnerQuery,
        body: TemplateBody,
        response: { 200: TemplateRecord, 201: TemplateRecord },
      },
    },
    async (request, reply) => {
      reply.headers(await countCall('publish', callerOf(request).subject));
      const key = { subject: ownerOf(request, 'templates'), name: request.params.name };
      const { template, isNew } = await templates.put(key, request.body, (version) =>
        isExpected(request.headers, version),
      );
      return reply
        .status(isNew ? 201 : 200)
        .header('etag', etagOf(template.version))
        .send(templateRecord(template));
    },
  );
  app.delete(
    '/templates/:name',
    {
      config: { refuses: [PRECONDITION_FAILED] },
      schema: {
        tags,
        summary: 'Delete a template; its versions can still be read by their numbers for 90 days',
        headers: PreconditionHeaders,
        params: TemplateParams,
        querystring: OwnerQuery,
        response: noContent,
      },
    },
    async (request, reply) => {
      const key = { subject: ownerOf(request, 'templates'), name: request.params.name };
      await templates.remove(key, (version) => isExpected(request.headers, version));
      return reply.status(204).send(null);
    },
  );
}
