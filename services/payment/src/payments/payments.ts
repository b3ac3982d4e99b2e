import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { createGuardedAgent } from '@rollcall/platform/outbound/guarded-agent.ts';
import { createLookups } from '@rollcall/platform/outbound/lookups.ts';
import { createPruner } from '@rollcall/platform/postgres/pruner.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { ServiceGround, ServiceMade } from '@rollcall/platform/service/service.ts';
import { createRefusedNotifications } from '@rollcall/platform/webhooks/refused-notifications.ts';
import type { PaymentConfig } from '../config.ts';
import { createGivenUpErrands } from '../errands/given-up.ts';
import type { QueueErrand } from '../errands/queue.ts';
import { errandRoutes } from '../errands/routes.ts';
import { createErrandWork } from '../errands/work.ts';
import { createLedgerCheck } from '../ledger/check.ts';
import { ledgerRoutes } from '../ledger/routes.ts';
import { settlementCheckRoute } from '../ledger/settlement-check.ts';
import { createLedger } from '../ledger/store.ts';
import { measureProviders } from '../providers/provider-metrics.ts';
import { noProviders, readProviders } from '../providers/providers-file.ts';
import { createReceiving } from './domain/inbox.ts';
import type { PaymentStore } from './domain/payments.ts';
import { createRefunding } from './domain/refunding.ts';
import { createSettling, type OnMethodCancelled } from './domain/settle.ts';
import { createTaking, type Taking } from './domain/take.ts';
import { paymentSubgraph } from './graphql/resolvers.ts';
import type { MakingDeps } from './making.ts';
import { watchOverdue } from './overdue-metrics.ts';
import { pageRoutes } from './pages/routes.ts';
import { watchReview } from './review-metrics.ts';
import { notificationRoutes } from './routes/notifications.ts';
import { payerErasureRoutes } from './routes/payer-erasures.ts';
import { paymentRoutes } from './routes/payments.ts';
import { providerNotificationRoutes } from './routes/provider-notifications.ts';
import { refundRoutes } from './routes/refunds.ts';
import { createNotificationTable } from './store/notifications.ts';
import { createPayerErasure } from './store/payer-erasure.ts';
import { createPaymentTable } from './store/payments.ts';
import { createRefundTable } from './store/refunds.ts';
import type { OnPaymentMade, OnPaymentMoved } from './store/write-payment.ts';
import { createInboxWork } from './work/inbox.ts';
import { createPaymentWork } from './work/payments.ts';
import { createRefundWork } from './work/refunds.ts';

const CONNECT_TIMEOUT_MS = 3000;
const TOTALS_MS = 60_000;

/** Payments, as the rest of the service has them. */
export interface PaymentParts extends Required<Pick<ServiceMade, 'routes' | 'pages' | 'actors' | 'subgraph'>> {
  readonly taking: Taking;
  readonly payments: PaymentStore;
}

/** Who is told of what becomes of payments. */
export interface PaymentListeners {
  readonly onMade: OnPaymentMade;
  readonly onMoved: OnPaymentMoved;
  readonly onMethodCancelled: OnMethodCancelled;
}

interface PaymentNeeds extends PaymentListeners, Pick<MakingDeps, 'customerRefusals'> {
  readonly queueErrand: QueueErrand;
}

/** @throws Error naming what is wrong with the file of providers. */
export async function createPayments(
  ground: ServiceGround<PaymentConfig>,
  { onMethodCancelled, customerRefusals, ...told }: PaymentNeeds,
): Promise<PaymentParts> {
  const { config, pool, vault, index, idempotency, recordEvents, clock, log, metrics } = ground;
  const { publicUrl, isProduction, lateCapture, providersFile } = config;
  const mayConnect = addressRules[config.providerAddresses];
  const dispatcher = createGuardedAgent({
    mayConnect,
    connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, config.providerTimeoutMs / 2),
    keepAlive: false,
  });
  const calls = { clock, dispatcher, timeoutMs: config.providerTimeoutMs };
  const { resolve } = createLookups();
  const configured =
    providersFile === undefined
      ? noProviders
      : await readProviders(providersFile, { ...calls, isProduction, publicUrl, resolve });
  const providers = measureProviders(metrics, configured);
  const sealing = { vault, emails: index('payer email'), methods: index('stored method') };
  const table = { ...sealing, pool, recordEvents, clock, lateCapture, ...told };
  const payments = createPaymentTable(table);
  const refunds = createRefundTable(table);
  const inbox = createNotificationTable({ pool, vault });
  const ledger = createLedger(pool);
  const taking = createTaking({ payments, providers, publicUrl, clock });
  const refunding = createRefunding({ refunds, payments, providers, clock });
  const settle = createSettling({ payments, refunding, onMethodCancelled, clock, log });
  const onRefused = createRefusedNotifications({ metrics, log, clock });
  const receiving = createReceiving({ inbox, providers, settle, onRefused, log });
  const paymentWork = createPaymentWork({ pool, payments, taking, settle, providers, clock, log });
  const inboxWork = createInboxWork({ inbox, receiving, log });
  const errandWork = createErrandWork({ pool, vault, providers, clock, log });
  const wake = () => {
    inboxWork.wake();
    paymentWork.hurried.wake();
  };
  watchReview(metrics, pool);
  watchOverdue(metrics, pool);
  const making = { payments, taking, customerRefusals, idempotency, publicUrl };
  const connections: Actor = { name: 'providers', start: async () => {}, stop: () => dispatcher.destroy() };
  return {
    taking,
    payments,
    subgraph: await paymentSubgraph(making),
    routes: [
      paymentRoutes(making),
      refundRoutes({ payments, refunds, refunding, idempotency }),
      notificationRoutes({ receiving, wake: () => inboxWork.wake() }),
      providerNotificationRoutes({ inbox, idempotency, wake: () => inboxWork.wake() }),
      payerErasureRoutes({ erasePayer: createPayerErasure(table), idempotency }),
      errandRoutes({ errands: createGivenUpErrands(pool), idempotency, wake: () => errandWork.wake() }),
      ledgerRoutes(ledger),
      settlementCheckRoute({ pool, find: (name) => providers.find(name) }),
    ],
    pages: [pageRoutes({ payments, receiving, sandbox: providers.sandbox, publicUrl, clock, wake })],
    actors: [
      connections,
      paymentWork.due,
      paymentWork.hurried,
      createRefundWork({ pool, refunding, log }),
      inboxWork,
      errandWork,
      createLedgerCheck({ ledger, metrics, log }),
      createPruner({ name: 'ledger-totals', prune: (limit) => ledger.addUp(limit), log, intervalMs: TOTALS_MS }),
      createPruner({ name: 'notifications', prune: (limit) => inbox.forget(limit), log }),
    ],
  };
}
