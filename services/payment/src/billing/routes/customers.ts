import { commonError } from '@rollcall/platform/common-errors.ts';
import { callerOf } from '@rollcall/platform/http/callers.ts';
import { idempotencyHeaders } from '@rollcall/platform/http/idempotency.ts';
import { createdQuery, listQuery, pageOf } from '@rollcall/platform/http/lists.ts';
import { answersOnce, found, IdParams, idOf, pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
import type { Idempotency } from '@rollcall/platform/postgres/idempotency.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { type Static, Type } from 'typebox';
import { refusals } from '../../domain/errors.ts';
import { Email, emailOf, Id, Locale, line, Metadata, nullable, Timestamp, TimeZone } from '../../schemas.ts';
import { type Customer, type CustomerStore, customerDefaults } from '../domain/customers.ts';
import type { MethodStore, PaymentMethod } from '../domain/methods.ts';
import { ownerOf } from './requests.ts';

const tags = ['billing'];

const Address = Type.Array(line(100, 'A line of the postal address'), { maxItems: 8 });

const optional = {
  name: Type.Optional(nullable(line(200, 'As invoices and mails have it'))),
  address: Type.Optional(Address),
  taxId: Type.Optional(nullable(line(40, 'A VAT number, as invoices show it'))),
  timeZone: Type.Optional(TimeZone),
  locale: Type.Optional(Locale),
  metadata: Type.Optional(Metadata),
};

const NewCustomer = Type.Object({ email: Email, ...optional }, strict);
const CustomerChange = Type.Object({ email: Type.Optional(Email), ...optional }, strict);

const CustomerAnswer = Type.Object({
  id: Id,
  email: Type.String({ description: 'Empty where the customer was erased' }),
  name: nullable(Type.String()),
  address: Type.Array(Type.String()),
  taxId: nullable(Type.String()),
  timeZone: Type.String(),
  locale: Type.String(),
  metadata: Type.Record(Type.String(), Type.String()),
  paymentMethods: Type.Array(
    Type.Object({
      id: Id,
      provider: Type.String(),
      usable: Type.Boolean({ description: 'False since the provider said that it is gone' }),
      createdAt: Timestamp,
    }),
    { description: 'That providers keep for charges without the customer, the newest first' },
  ),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  erasedAt: nullable(Timestamp),
});

const MethodParams = Type.Object({ ...IdParams.properties, methodId: Type.String({ description: 'UUID' }) });

export interface CustomerRoutesDeps {
  readonly customers: CustomerStore;
  readonly methods: MethodStore;
  readonly idempotency: Idempotency;
}

/** Who pays invoices, and has subscriptions. */
export function customerRoutes({ customers, methods, idempotency }: CustomerRoutesDeps): Routes {
  const once = answersOnce(idempotency);
  const answerOf = async (customer: Customer) => customerAnswer(customer, await methods.listOf([customer.id]));
  return (app) => {
    app.post(
      '/customers',
      {
        schema: {
          tags,
          summary: 'Make a customer',
          headers: idempotencyHeaders,
          body: NewCustomer,
          response: { 201: CustomerAnswer },
        },
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'createCustomer',
          effect: async (id) => {
            const { subject } = callerOf(request);
            const email = emailOf(request.body.email);
            const customer = await customers.create({ ...customerDefaults, ...request.body, email, id, subject });
            return { status: 201, location: `customers/${id}`, body: await answerOf(customer) };
          },
        }),
    );
    app.get(
      '/customers',
      {
        schema: {
          tags,
          summary: 'Customers, newest first',
          querystring: Type.Object({ ...listQuery, ...createdQuery, email: Type.Optional(Email) }, strict),
          response: { 200: Type.Object({ customers: Type.Array(CustomerAnswer), ...pageAnswer }) },
        },
      },
      async (request) => {
        const page = pageOf(request.query);
        const { rows, total, nextCursor } = await customers.list({
          owner: ownerOf(request),
          email: request.query.email === undefined ? undefined : emailOf(request.query.email),
          page,
        });
        const { limit, offset } = page;
        const kept = Map.groupBy(await methods.listOf(rows.map(({ id }) => id)), ({ customerId }) => customerId);
        const answers = rows.map((customer) => customerAnswer(customer, kept.get(customer.id) ?? []));
        return { customers: answers, total, limit, offset, nextCursor };
      },
    );
    app.get(
      '/customers/:id',
      { schema: { tags, summary: 'One customer', params: IdParams, response: { 200: CustomerAnswer } } },
      async (request) => answerOf(found(await customers.find(idOf(request), ownerOf(request)))),
    );
    app.patch(
      '/customers/:id',
      {
        schema: {
          tags,
          summary: 'Change a customer; invoices that were issued stay as they are',
          params: IdParams,
          body: CustomerChange,
          response: { 200: CustomerAnswer },
        },
        config: { refuses: refusals('CUSTOMER_ERASED') },
      },
      async (request) => {
        const { email } = request.body;
        const change = email === undefined ? request.body : { ...request.body, email: emailOf(email) };
        return answerOf(found(await customers.update(idOf(request), ownerOf(request), change)));
      },
    );
    erasureRoute(customers)(app);
    methodRoute({ customers, methods })(app);
  };
}

function erasureRoute(customers: CustomerStore): Routes {
  return (app) => {
    app.delete(
      '/customers/:id',
      {
        schema: {
          tags,
          summary: 'Erase a customer, with what providers keep of them; invoices that were issued stay',
          params: IdParams,
          response: { 200: CustomerAnswer },
        },
        config: { refuses: refusals('CUSTOMER_IN_USE') },
      },
      async (request) => customerAnswer(found(await customers.erase(idOf(request), ownerOf(request))), []),
    );
  };
}

function methodRoute({ customers, methods }: Pick<CustomerRoutesDeps, 'customers' | 'methods'>): Routes {
  return (app) => {
    app.delete(
      '/customers/:id/payment-methods/:methodId',
      {
        schema: {
          tags,
          summary: 'Forget a stored method; subscriptions that had it charge another of the provider',
          params: MethodParams,
          response: { 200: CustomerAnswer },
        },
      },
      async (request) => {
        const customer = found(await customers.find(idOf(request), ownerOf(request)));
        const methodId = idOf({ params: { id: request.params.methodId } });
        if (!(await methods.remove(customer.id, methodId))) throw commonError('NOT_FOUND');
        return customerAnswer(customer, await methods.listOf([customer.id]));
      },
    );
  };
}

function customerAnswer(customer: Customer, methods: readonly PaymentMethod[]): Static<typeof CustomerAnswer> {
  const { subject: _subject, address, metadata, createdAt, updatedAt, erasedAt, ...rest } = customer;
  return {
    ...rest,
    address: [...address],
    metadata: { ...metadata },
    paymentMethods: methods.map(({ id, provider, usable, createdAt: keptAt }) => ({
      id,
      provider,
      usable,
      createdAt: keptAt.toISOString(),
    })),
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
    erasedAt: erasedAt?.toISOString() ?? null,
  };
}
