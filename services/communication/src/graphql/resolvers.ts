import { readFile } from 'node:fs/promises';
import { ServiceError } from '@rollcall/platform/errors.ts';
import { checkedArguments, checkedInput } from '@rollcall/platform/graphql/input.ts';
import { readTogether } from '@rollcall/platform/graphql/read-together.ts';
import type { SubgraphContext, SubgraphOptions } from '@rollcall/platform/graphql/subgraph.ts';
import { callerOf } from '@rollcall/platform/http/callers.ts';
import { mutationKeyOf } from '@rollcall/platform/http/idempotency.ts';
import type { Identity } from '@rollcall/platform/http/identity.ts';
import { isUuid } from '@rollcall/platform/http/resources.ts';
import { type ChannelRequest, readMessage } from '../domain/sending.ts';
import { listMessages, whoseOf } from '../listing.ts';
import { attemptRecords, eventRecords, MessagesQuery, messageRecord } from '../schemas/messages.ts';
import { emailBody, pushBody, type SendingRules, smsBody } from '../schemas/sending.ts';
import { type SubmissionDeps, submitMessage } from '../submission.ts';

type Deps = SubmissionDeps & SendingRules;

interface SendArguments {
  readonly input: Readonly<Record<string, unknown>> & { readonly idempotencyKey?: string | null };
}

interface Reference {
  readonly id: string;
}

/** The subgraph of messages (contract 2): the same functions as over REST. */
export async function messageSubgraph(deps: Deps): Promise<Pick<SubgraphOptions, 'sdl' | 'resolvers'>> {
  const bodies = { email: emailBody(deps), sms: smsBody(deps), push: pushBody(deps) };
  const send =
    (read: (input: unknown) => ChannelRequest) =>
    async (_root: unknown, { input }: SendArguments, context: SubgraphContext) => {
      const { idempotencyKey, ...members } = input;
      const key = mutationKeyOf(context.headers, idempotencyKey);
      const { subject } = callerOf(context);
      const { once } = await submitMessage(deps, { subject, asked: read(members), key, root: 'input' });
      return once.answer.body;
    };
  const find = (_root: unknown, { id }: Reference, context: SubgraphContext) =>
    findMessage(deps, id, callerOf(context));
  const attemptsOf = readTogether((ids) => deps.store.attempts(ids));
  const historyOf = readTogether((ids) => deps.store.histories(ids));
  const list = (_root: unknown, args: object, context: SubgraphContext) =>
    listMessages(deps, callerOf(context), checkedArguments(MessagesQuery, args));
  return {
    sdl: await readFile(new URL('schema.graphql', import.meta.url), 'utf8'),
    resolvers: {
      Query: { message: find, messages: list },
      Mutation: {
        sendEmail: send((input) => ({ channel: 'email', request: checkedInput(bodies.email, input) })),
        sendSMS: send((input) => ({ channel: 'sms', request: checkedInput(bodies.sms, input) })),
        sendPush: send((input) => ({ channel: 'push', request: checkedInput(bodies.push, input) })),
      },
      Message: {
        __resolveReference: (reference: Reference, _arguments: unknown, context: SubgraphContext) =>
          findMessage(deps, reference.id, callerOf(context)),
        attempts: async ({ id }: Reference) => attemptRecords(await attemptsOf(id)),
        events: async ({ id }: Reference) => eventRecords(await historyOf(id)),
      },
    },
  };
}

async function findMessage(deps: Deps, id: string, caller: Identity) {
  if (!isUuid(id)) return null;
  try {
    return messageRecord(await readMessage(deps, id, whoseOf(caller)));
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'NOT_FOUND') return null;
    throw error;
  }
}
