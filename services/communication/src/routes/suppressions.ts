import { commonError, invalidRequest } from '@rollcall/platform/common-errors.ts';
import { pageOf } from '@rollcall/platform/http/lists.ts';
import { noContent } from '@rollcall/platform/http/resources.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import {
  parseAddressee,
  type SuppressedChannel,
  type SuppressionStore,
  scopeOfReason,
} from '../domain/suppressions.ts';
import {
  RemoveQuery,
  SuppressionParams,
  SuppressionRecord,
  SuppressionsQuery,
  SuppressionsResponse,
  suppressionRecord,
  WriteBody,
  WriteQuery,
} from '../schemas/suppressions.ts';
import { ownerOf } from './owner.ts';

const tags = ['recipients'];

/** `/suppressions`. */
export function suppressionRoutes(suppressions: SuppressionStore): Routes {
  return (app) => {
    app.get(
      '/suppressions',
      {
        schema: {
          tags,
          summary: 'Who gets no messages, and why: the newest first',
          querystring: SuppressionsQuery,
          response: { 200: SuppressionsResponse },
        },
      },
      async (request) => {
        const { recipient, channel, reason, ...list } = request.query;
        const page = pageOf(list);
        const known = recipient === undefined ? undefined : addresseeOf('query/recipient', recipient, channel);
        const { rows, total, nextCursor } = await suppressions.list(
          ownerOf(request, 'suppressions'),
          { recipient: known?.recipient, channel: known?.channel ?? channel, reason },
          page,
        );
        return {
          suppressions: rows.map(suppressionRecord),
          total,
          limit: page.limit,
          offset: page.offset,
          nextCursor,
        };
      },
    );
    writeRoutes(app, suppressions);
  };
}

function writeRoutes(app: App, suppressions: SuppressionStore): void {
  app.put(
    '/suppressions/:recipient',
    {
      // Nothing need be said.
      preValidation: async (request) => {
        request.body ??= {};
      },
      schema: {
        tags,
        summary: 'Send nothing more to a recipient, for the reason `manual`',
        params: SuppressionParams,
        querystring: WriteQuery,
        body: WriteBody,
        response: { 200: SuppressionRecord, 201: SuppressionRecord },
      },
    },
    async (request, reply) => {
      const { channel } = request.query;
      const { scope = scopeOfReason.manual } = request.body;
      const addressee = addresseeOf('path/recipient', request.params.recipient, channel);
      const { suppression, isNew } = await suppressions.add({
        ...addressee,
        subject: ownerOf(request, 'suppressions'),
        reason: 'manual',
        scope,
        messageId: undefined,
      });
      return reply.status(isNew ? 201 : 200).send(suppressionRecord(suppression));
    },
  );
  app.delete(
    '/suppressions/:recipient',
    {
      schema: {
        tags,
        summary: 'Send to a recipient again, whatever the reason was, or where it was this one',
        params: SuppressionParams,
        querystring: RemoveQuery,
        response: noContent,
      },
    },
    async (request, reply) => {
      const { channel, reason } = request.query;
      const addressee = addresseeOf('path/recipient', request.params.recipient, channel);
      const isRemoved = await suppressions.remove(
        { ...addressee, subject: ownerOf(request, 'suppressions') },
        { reason },
      );
      if (!isRemoved) throw commonError('NOT_FOUND');
      return reply.status(204).send(null);
    },
  );
}

/** @throws ServiceError INVALID_REQUEST where it is none, or one of another channel. */
function addresseeOf(path: string, text: string, channel: SuppressedChannel | undefined) {
  const parsed = parseAddressee(text);
  if ('fault' in parsed) throw invalidRequest([{ path, message: parsed.fault }]);
  if (channel === undefined || channel === parsed.value.channel) return parsed.value;
  throw invalidRequest([{ path, message: `must be a recipient of ${channel}` }]);
}
