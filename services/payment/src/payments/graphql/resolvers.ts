import { readFile } from 'node:fs/promises';
import { checkedArguments, checkedInput } from '@rollcall/platform/graphql/input.ts';
import { readTogether } from '@rollcall/platform/graphql/read-together.ts';
import type { SubgraphContext, SubgraphOptions } from '@rollcall/platform/graphql/subgraph.ts';
import { callerOf } from '@rollcall/platform/http/callers.ts';
import { mutationKeyOf } from '@rollcall/platform/http/idempotency.ts';
import { isUuid, ownerOf } from '@rollcall/platform/http/resources.ts';
import type { PaymentStore } from '../domain/payments.ts';
import { listPayments, PaymentsQuery } from '../listing.ts';
import { type MakingDeps, makePayment } from '../making.ts';
import { eventsAnswer, NewPayment, paymentAnswer } from '../routes/schemas.ts';
import { readUserPayments } from './user-payments.ts';

interface Deps extends MakingDeps {
  readonly payments: PaymentStore;
}

interface CreateArguments {
  readonly input: Readonly<Record<string, unknown>> & { readonly idempotencyKey?: string | null };
}

interface Reference {
  readonly id: string;
}

/** The subgraph of payments (contract 2): the same functions as over REST. */
export async function paymentSubgraph(deps: Deps): Promise<Pick<SubgraphOptions, 'sdl' | 'resolvers'>> {
  const { payments, publicUrl } = deps;
  const find = async ({ id }: Reference, context: SubgraphContext) => {
    const payment = isUuid(id) ? await payments.find(id, ownerOf(context, 'payments')) : undefined;
    return payment === undefined ? null : paymentAnswer(publicUrl, payment);
  };
  const historyOf = readTogether((ids) => payments.histories(ids));
  const list = (_root: unknown, args: object, context: SubgraphContext) =>
    listPayments(deps, context, checkedArguments(PaymentsQuery, args));
  return {
    sdl: await readFile(new URL('schema.graphql', import.meta.url), 'utf8'),
    resolvers: {
      Query: {
        payment: (_root: unknown, reference: Reference, context: SubgraphContext) => find(reference, context),
        payments: list,
      },
      Mutation: {
        createPayment: async (_root: unknown, { input }: CreateArguments, context: SubgraphContext) => {
          const { idempotencyKey, ...members } = input;
          const key = mutationKeyOf(context.headers, idempotencyKey);
          const body = checkedInput(NewPayment, members);
          const { subject } = callerOf(context);
          const { answer } = await makePayment(deps, { subject, key, root: 'input', body });
          return answer.body;
        },
      },
      Payment: {
        __resolveReference: (reference: Reference, _arguments: unknown, context: SubgraphContext) =>
          find(reference, context),
        events: async ({ id }: Reference) => eventsAnswer(await historyOf(id)),
      },
      User: {
        // Whoever is asked for is somebody: who they are another service knows.
        __resolveReference: (reference: Reference) => reference,
        payments: readUserPayments(deps),
      },
    },
  };
}
