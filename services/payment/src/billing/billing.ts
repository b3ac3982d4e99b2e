import { createDueWork, type DueWork, takeDueRows } from '@rollcall/platform/postgres/due-work.ts';
import { inTransaction } from '@rollcall/platform/postgres/pool.ts';
import { createPruner } from '@rollcall/platform/postgres/pruner.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import type { ServiceGround } from '@rollcall/platform/service/service.ts';
import type { PaymentConfig } from '../config.ts';
import type { Refusal } from '../domain/refusals.ts';
import type { QueueErrand } from '../errands/queue.ts';
import type { PaymentListeners, PaymentParts } from '../payments/payments.ts';
import { createBilledPayments } from './billed-payments.ts';
import { customerRefusals } from './domain/customers.ts';
import { runSubscription } from './domain/scheduler.ts';
import type { SubscribingDeps } from './domain/subscribing.ts';
import { createCommunication } from './mails/communication.ts';
import { createMailWork, type MailWorkDeps, pruneMails } from './mails/mail-work.ts';
import { createInvoiceLinks, invoicePages } from './pages/invoice-page.ts';
import { customerRoutes } from './routes/customers.ts';
import { invoiceRoutes } from './routes/invoices.ts';
import { planRoutes } from './routes/plans.ts';
import { subscriptionRoutes } from './routes/subscriptions.ts';
import { readSellers } from './sellers.ts';
import { holdCustomer } from './store/customer-rows.ts';
import { createCustomerTable } from './store/customers.ts';
import { createInvoicePayments } from './store/invoice-payments.ts';
import { createInvoiceTable } from './store/invoices.ts';
import { queueMail } from './store/mail-rows.ts';
import { createMethodRows } from './store/methods.ts';
import { createPlanTable } from './store/plans.ts';
import { createInvoiceSealer } from './store/sealed-invoices.ts';
import { createSettlement } from './store/settlement.ts';
import { createSubscriptionTable } from './store/subscriptions.ts';

/** How many subscriptions are worked on at a time. */
const CONCURRENCY = 8;
/** Longer than a charge takes. */
const LEASE_SECONDS = 60;

/** Customers, plans, invoices and subscriptions, as a part of the service. */
interface Billing {
  readonly routes: readonly Routes[];
  readonly pages: readonly Routes[];
  readonly actors: readonly Actor[];
}

/** Billing, which is told of payments before it can have any made. */
export interface PreparedBilling {
  readonly listeners: PaymentListeners;
  readonly customerRefusals: (id: string, subject: string) => Promise<readonly Refusal[]>;
  /** @throws Error where the secret of the client cannot be read. */
  readonly build: (payments: Pick<PaymentParts, 'taking' | 'payments'>) => Promise<Billing>;
}

/** @throws Error where the file of the sellers cannot be read. */
export async function prepareBilling(
  ground: ServiceGround<PaymentConfig>,
  queueErrand: QueueErrand,
): Promise<PreparedBilling> {
  const { config, pool, vault, index, clock, recordEvents } = ground;
  const { sellersFile, client } = config;
  const sellerOf = sellersFile === undefined ? () => undefined : await readSellers(sellersFile);
  const methods = createMethodRows({ vault, tokens: index('payment method'), queueErrand });
  const deps = {
    pool,
    vault,
    clock,
    recordEvents,
    sellerOf,
    methods,
    sealer: createInvoiceSealer(vault),
    queueMail: client === undefined ? async () => undefined : queueMail,
  };
  const customers = createCustomerTable({ ...deps, emails: index('customer email') });
  return {
    listeners: {
      onMade: async (client, { customerId, subject }) => {
        if (customerId !== undefined) await holdCustomer(client, customerId, subject);
      },
      onMoved: createSettlement(deps),
      onMethodCancelled: (provider, method) => methods.discard(pool(), { provider, method }),
    },
    customerRefusals: async (id, subject) => customerRefusals(await customers.find(id, subject)),
    async build({ taking, payments }) {
      const { idempotency, log } = ground;
      const plans = createPlanTable(pool);
      const invoices = createInvoiceTable(deps);
      const subscribing: SubscribingDeps = {
        customers,
        plans,
        invoices,
        sellerOf,
        clock,
        invoicePayments: createInvoicePayments(deps),
        subscriptions: createSubscriptionTable({ ...deps, onDue: () => scheduler.wake() }),
        methods: {
          listOf: (customerIds) => methods.listOf(pool(), customerIds),
          remove: (customerId, methodId) =>
            inTransaction(pool(), (client) => methods.remove(client, { customerId, methodId })),
        },
        payments: createBilledPayments({ taking, payments, publicUrl: config.publicUrl }),
        log,
      };
      const scheduler = createScheduler(ground, subscribing);
      const links = createInvoiceLinks(index('invoice link'), config.publicUrl);
      const invoiceUrl = (id: string) => links.urlOf(id);
      return {
        routes: [
          customerRoutes({ customers, methods: subscribing.methods, idempotency }),
          planRoutes({ plans, idempotency }),
          ...invoiceRoutes({ ...subscribing, invoices, invoiceUrl, idempotency }),
          ...subscriptionRoutes({ ...subscribing, idempotency }),
        ],
        pages: [invoicePages({ ...subscribing, links })],
        actors: [scheduler, ...(await mailActors(ground, { pool, customers, invoices, invoiceUrl, clock, log }))],
      };
    },
  };
}

/** Does what is due for subscriptions, in every replica. */
function createScheduler({ pool, log }: ServiceGround<PaymentConfig>, deps: SubscribingDeps): DueWork {
  const due = { table: 'subscriptions', columns: 'id', leaseSeconds: LEASE_SECONDS };
  return createDueWork<{ readonly id: string }>({
    name: 'subscriptions',
    take: (limit) => takeDueRows({ ...due, pool: pool(), limit }),
    work: ({ id }) => runSubscription(deps, id),
    concurrency: CONCURRENCY,
    log,
  });
}

async function mailActors(
  { config: { client, gateway }, pool, clock, log }: ServiceGround<PaymentConfig>,
  deps: Omit<MailWorkDeps, 'communication'>,
): Promise<readonly Actor[]> {
  if (client === undefined) return [];
  const communication = await createCommunication({ gateway: gateway.jwksUrl, client, clock });
  return [
    createMailWork({ ...deps, communication }),
    createPruner({ name: 'billing-mails', prune: (limit) => pruneMails(pool(), limit), log }),
  ];
}
