import { invalidRequest } from '@rollcall/platform/common-errors.ts';
import { checkedArguments } from '@rollcall/platform/graphql/input.ts';
import { readTogether } from '@rollcall/platform/graphql/read-together.ts';
import type { SubgraphContext } from '@rollcall/platform/graphql/subgraph.ts';
import { listQuery, pageOf } from '@rollcall/platform/http/lists.ts';
import { isUuid, ownerOf, strict } from '@rollcall/platform/http/resources.ts';
import { Type } from 'typebox';
import type { Payment, PaymentStore } from '../domain/payments.ts';
import { paymentAnswer } from '../routes/schemas.ts';

interface UserPaymentsDeps {
  readonly payments: PaymentStore;
  /** Base URL of our pages. */
  readonly publicUrl: string;
}

const Arguments = Type.Object({ limit: listQuery.limit }, strict);

/** Of all users of one request: each payment is decrypted, and another service says how many users there are. */
const MOST_TOGETHER = 10_000;

type ReadPayments = (customerId: string) => Promise<readonly Payment[]>;

/**
 * `User.payments` (docs/decisions/0471). Those of all users that one request asks for are read at
 * once.
 */
export function readUserPayments({ payments, publicUrl }: UserPaymentsDeps) {
  /** By request and limit. */
  const readers = new WeakMap<SubgraphContext, Map<number, ReadPayments>>();

  function readerFor(context: SubgraphContext, limit: number): ReadPayments {
    const ofRequest = readers.get(context) ?? new Map<number, ReadPayments>();
    readers.set(context, ofRequest);
    const reader =
      ofRequest.get(limit) ??
      readTogether(async (ids) => {
        const customerIds = [...new Set(ids)];
        requireFew(customerIds.length * limit);
        return payments.newestOf(customerIds, ownerOf(context, 'payments'), limit);
      });
    ofRequest.set(limit, reader);
    return reader;
  }

  return async ({ id }: { readonly id: string }, args: object, context: SubgraphContext) => {
    const { limit } = pageOf(checkedArguments(Arguments, args));
    // What is no id is nobody's.
    const found = isUuid(id) ? await readerFor(context, limit)(id) : [];
    return found.map((payment) => paymentAnswer(publicUrl, payment));
  };
}

/** @throws ServiceError INVALID_REQUEST. */
function requireFew(most: number): void {
  if (most <= MOST_TOGETHER) return;
  const message = `must be so small that all users of a request have ${MOST_TOGETHER} payments at most`;
  throw invalidRequest([{ path: 'input/limit', message }]);
}
