import { idempotencyHeaders } from '@rollcall/platform/http/idempotency.ts';
import { answersOnce, strict } from '@rollcall/platform/http/resources.ts';
import type { Idempotency } from '@rollcall/platform/postgres/idempotency.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { Type } from 'typebox';
import { refusals } from '../../domain/errors.ts';
import { Email, emailOf, Id, line } from '../../schemas.ts';
import type { ErasePayer } from '../domain/payers.ts';

const Payer = Type.Object(
  {
    customerEmail: Email,
    subject: Type.Optional(line(255, 'Whose payments; those of all subjects when absent')),
  },
  strict,
);

const ErasedAnswer = Type.Object({
  payments: Type.Integer({ description: 'How many have nothing of the payer any more, by this call' }),
  customers: Type.Array(Id, {
    description: 'Whose payments have the address too, up to ten: erase them by DELETE /customers/{id}',
  }),
});

interface PayerErasureRoutesDeps {
  readonly erasePayer: ErasePayer;
  readonly idempotency: Idempotency;
}

/** Payers who are no customers. The scope is that of who sees all, and no address is in a path. */
export function payerErasureRoutes({ erasePayer, idempotency }: PayerErasureRoutesDeps): Routes {
  const once = answersOnce(idempotency);
  return (app) => {
    app.post(
      '/payer-erasures',
      {
        config: { refuses: refusals('CUSTOMER_IN_USE') },
        schema: {
          tags: ['payments'],
          summary: 'Erase the payer of all payments of an address that name no customer',
          headers: idempotencyHeaders,
          body: Payer,
          response: { 200: ErasedAnswer },
        },
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'erasePayer',
          effect: async () => {
            const { customerEmail, subject } = request.body;
            const erased = await erasePayer({ email: emailOf(customerEmail), subject });
            return { status: 200, body: { ...erased } };
          },
        }),
    );
  };
}
