import type { Identity } from '@rollcall/platform/http/identity.ts';
import { createdQuery, listQuery, pageOf } from '@rollcall/platform/http/lists.ts';
import { isUuid, ownerOf, pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
import { type Static, Type } from 'typebox';
import { Email, emailOf } from '../schemas.ts';
import type { PaymentStore } from './domain/payments.ts';
import { PaymentAnswer, PaymentStatus, Provider, paymentAnswer } from './routes/schemas.ts';

/** Which payments a list has. */
export const PaymentsQuery = Type.Object(
  {
    ...listQuery,
    ...createdQuery,
    status: Type.Optional(PaymentStatus),
    provider: Type.Optional(Provider),
    customerEmail: Type.Optional(Email),
    customerId: Type.Optional(Type.String({ maxLength: 36 })),
    invoiceId: Type.Optional(Type.String({ maxLength: 36 })),
  },
  strict,
);

export const PaymentsAnswer = Type.Object({ payments: Type.Array(PaymentAnswer), ...pageAnswer });

interface ListingDeps {
  readonly payments: PaymentStore;
  /** Base URL of our pages. */
  readonly publicUrl: string;
}

/** Payments that a caller sees, newest first, by whichever door. */
export async function listPayments(
  { payments, publicUrl }: ListingDeps,
  asking: { readonly caller: Identity | undefined },
  asked: Static<typeof PaymentsQuery>,
): Promise<Static<typeof PaymentsAnswer>> {
  const page = pageOf(asked);
  const { status, provider, customerEmail: email, customerId, invoiceId } = asked;
  const { limit, offset } = page;
  // What is no id is nobody's.
  if ([customerId, invoiceId].some((id) => id !== undefined && !isUuid(id)))
    return { payments: [], total: 0, limit, offset, nextCursor: null };
  const customerEmail = email === undefined ? undefined : emailOf(email);
  const query = { owner: ownerOf(asking, 'payments'), status, provider, customerEmail, customerId, invoiceId, page };
  const { rows, total, nextCursor } = await payments.list(query);
  return { payments: rows.map((row) => paymentAnswer(publicUrl, row)), total, limit, offset, nextCursor };
}
