import { fileURLToPath } from 'node:url';
import type { ProcessDefinition } from '@rollcall/platform/process/main.ts';
import { type ServiceGround, type ServiceMade, serviceParts } from '@rollcall/platform/service/service.ts';
import { prepareBilling } from './billing/billing.ts';
import { type PaymentConfig, paymentConfig } from './config.ts';
import { createErrandQueue } from './errands/queue.ts';
import { eventTypes } from './event-types.ts';
import { createPayments } from './payments/payments.ts';
import { sealedTables } from './sealed-tables.ts';

const NAME = 'payment';
const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url));
const DATABASE_CONNECTIONS = 20;
const BODY_LIMIT_BYTES = 1024 * 1024;

/** One replica of the payment service. */
export const paymentProcess: ProcessDefinition<PaymentConfig> = {
  name: NAME,
  manifest: new URL('../package.json', import.meta.url),
  config: paymentConfig,
  isTraced: true,
  parts: (context) =>
    serviceParts(context, {
      name: NAME,
      migrations: MIGRATIONS,
      databaseConnections: DATABASE_CONNECTIONS,
      accessTokenAudience: context.config.tokenAudience,
      events: { area: 'payments', types: eventTypes },
      build,
    }),
};

async function build(ground: ServiceGround<PaymentConfig>): Promise<ServiceMade> {
  const queueErrand = createErrandQueue(ground.vault);
  const prepared = await prepareBilling(ground, queueErrand);
  const payments = await createPayments(ground, {
    ...prepared.listeners,
    customerRefusals: prepared.customerRefusals,
    queueErrand,
  });
  const billing = await prepared.build(payments);
  return {
    title: 'Rollcall payment',
    description: 'Payments, refunds, subscriptions and invoices.',
    tags: [
      { name: 'payments', description: 'Payments and refunds' },
      { name: 'billing', description: 'Customers, plans, subscriptions and invoices' },
      { name: 'ledger', description: 'What moved, and what providers settled' },
      { name: 'webhooks', description: 'Telling of payments' },
      { name: 'health', description: 'The service itself' },
    ],
    bodyLimit: BODY_LIMIT_BYTES,
    sealedTables: sealedTables(ground.index),
    routes: [...payments.routes, ...billing.routes],
    subgraph: payments.subgraph,
    pages: [...payments.pages, ...billing.pages],
    actors: [...payments.actors, ...billing.actors],
  };
}
