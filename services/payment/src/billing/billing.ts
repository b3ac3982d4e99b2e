import type { Routes } from '@rollcall/platform/service/app.ts';
import type { ServiceGround } from '@rollcall/platform/service/service.ts';
import type { PaymentConfig } from '../config.ts';
import { customerRoutes } from './routes/customers.ts';
import { invoiceRoutes } from './routes/invoices.ts';
import { planRoutes } from './routes/plans.ts';
import { readSellers } from './sellers.ts';
import { createCustomerTable } from './store/customers.ts';
import { createInvoiceTable } from './store/invoices.ts';
import { createPlanTable } from './store/plans.ts';
import { createInvoiceSealer } from './store/sealed-invoices.ts';

/** Customers, plans, invoices and subscriptions, as a part of the service. */
export interface Billing {
  readonly routes: readonly Routes[];
}

/** @throws Error where the file of the sellers cannot be read. */
export async function createBilling(ground: ServiceGround<PaymentConfig>): Promise<Billing> {
  const { config, pool, vault, index, idempotency, clock, recordEvents } = ground;
  const { sellersFile } = config;
  const sellerOf = sellersFile === undefined ? () => undefined : await readSellers(sellersFile);
  const customers = createCustomerTable({ pool, vault, emails: index('customer email') });
  const plans = createPlanTable(pool);
  const invoices = createInvoiceTable({ pool, sealer: createInvoiceSealer(vault), clock, recordEvents });
  return {
    routes: [
      customerRoutes({ customers, idempotency }),
      planRoutes({ plans, idempotency }),
      ...invoiceRoutes({ customers, invoices, sellerOf, clock, idempotency }),
    ],
  };
}
