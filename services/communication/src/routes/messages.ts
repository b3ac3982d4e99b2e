import { commonError } from '@rollcall/platform/common-errors.ts';
import { callerOf } from '@rollcall/platform/http/callers.ts';
import { idempotencyHeaders, idempotencyKeyOf, sendOnceAnswer } from '@rollcall/platform/http/idempotency.ts';
import { isUuid } from '@rollcall/platform/http/resources.ts';
import type { Idempotency } from '@rollcall/platform/postgres/idempotency.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Message } from '../domain/messages.ts';
import {
  cancelMessage,
  type MessageCommand,
  readMessage,
  rescheduleMessage,
  retryMessage,
  type SendMessagesDeps,
} from '../domain/sending.ts';
import { errorCatalogue } from '../errors.ts';
import { listMessages, whoseOf } from '../listing.ts';
import type { OutletHealth } from '../providers/outlets.ts';
import {
  MessageDetails,
  MessageParams,
  MessageRecord,
  MessagesQuery,
  MessagesResponse,
  messageDetails,
  messageRecord,
  ProvidersResponse,
} from '../schemas/messages.ts';
import { messagePatch } from '../schemas/sending.ts';

const tags = ['messages'];

export interface MessageRoutesDeps extends Pick<SendMessagesDeps, 'store' | 'wake' | 'ways' | 'clock'> {
  readonly idempotency: Idempotency;
  readonly health: () => Promise<readonly OutletHealth[]>;
}

/** `/messages` and `/providers`. */
export function messageRoutes(deps: MessageRoutesDeps): Routes {
  const { store } = deps;
  const command = commands(deps);
  return (app) => {
    app.get(
      '/messages',
      {
        schema: {
          tags,
          summary: 'Messages, newest first',
          querystring: MessagesQuery,
          response: { 200: MessagesResponse },
        },
      },
      async (request) => listMessages(deps, callerOf(request), request.query),
    );
    app.get(
      '/messages/:id',
      {
        schema: {
          tags,
          summary: 'One message, each attempt to send it, and what happened to it',
          params: MessageParams,
          response: { 200: MessageDetails },
        },
      },
      async (request) => {
        const id = idOf(request.params);
        const message = await readMessage(deps, id, whoseOf(callerOf(request)));
        const attempts = (await store.attempts([id])).get(id) ?? [];
        return messageDetails(message, attempts, (await store.histories([id])).get(id) ?? []);
      },
    );
    const config = { refuses: [errorCatalogue.CONFLICT] };
    app.patch(
      '/messages/:id',
      {
        config,
        schema: {
          tags,
          summary: 'Change when a message is sent that is scheduled',
          params: MessageParams,
          body: messagePatch(deps),
          response: { 200: MessageRecord },
        },
      },
      async (request) => {
        const message = { id: idOf(request.params), whose: whoseOf(callerOf(request)) };
        return messageRecord(await rescheduleMessage(deps, message, request.body.sendAt));
      },
    );
    const schema = { tags, headers: idempotencyHeaders, params: MessageParams, response: { 200: MessageRecord } };
    app.post(
      '/messages/:id/cancel',
      { config, schema: { ...schema, summary: 'Keep a message that is scheduled or queued from being sent' } },
      (request, reply) => command(request, reply, { operation: 'cancelMessage', effect: cancelMessage }),
    );
    app.post(
      '/messages/:id/retry',
      {
        config,
        schema: { ...schema, summary: 'Try a message again that failed, or that is unknown and may then arrive twice' },
      },
      (request, reply) => command(request, reply, { operation: 'retryMessage', effect: retryMessage }),
    );
    app.get(
      '/providers',
      { schema: { tags: ['providers'], summary: 'Providers, and how they do', response: { 200: ProvidersResponse } } },
      async () => ({
        providers: (await deps.health()).map(({ quotas, ...rest }) => ({ ...rest, quotas: [...quotas] })),
      }),
    );
  };
}

interface Command {
  readonly operation: string;
  readonly effect: (deps: MessageRoutesDeps, command: MessageCommand) => Promise<Message>;
}

function commands(deps: MessageRoutesDeps) {
  return async (
    request: FastifyRequest<{ Params: { id: string } }>,
    reply: FastifyReply,
    { operation, effect }: Command,
  ): Promise<void> => {
    const id = idOf(request.params);
    const { subject } = callerOf(request);
    const call = { subject, operation, key: idempotencyKeyOf(request.headers), request: { id } };
    const once = await deps.idempotency.once(call, async (callId) => {
      const message = await effect(deps, { id, whose: whoseOf(callerOf(request)), callId });
      return { status: 200, body: messageRecord(message) };
    });
    await sendOnceAnswer(reply, once);
  };
}

/** @throws ServiceError NOT_FOUND for what is no id. */
function idOf({ id }: { readonly id: string }): string {
  if (!isUuid(id)) throw commonError('NOT_FOUND');
  return id;
}
