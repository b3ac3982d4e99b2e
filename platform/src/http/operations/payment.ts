import type { Operation } from './operation.ts';

/** What the payment service does. */
export const paymentOperations: readonly Operation[] = [
  {
    name: 'Make, cancel and resolve payments, and have webhooks told of them',
    scope: 'payments:write',
    rest: [
      'POST /payments',
      'POST /payments/:id/cancel',
      'POST /payments/:id/resolve',
      'POST /webhook-endpoints',
      'PATCH /webhook-endpoints/:id',
      'DELETE /webhook-endpoints/:id',
      'POST /webhook-deliveries/:id/replay',
    ],
    graphql: ['Mutation.createPayment'],
  },
  {
    name: 'Read and watch payments',
    scope: 'payments:read',
    rest: [
      'GET /payments',
      'GET /payments/:id',
      'GET /payments/:id/refunds',
      'GET /ledger/balances',
      'GET /reports/settlement',
      'GET /events',
      'GET /webhook-endpoints',
      'GET /webhook-endpoints/:id',
      'GET /webhook-deliveries',
      'GET /webhook-deliveries/:id',
    ],
    graphql: ['Query.payment', 'Payment'],
    webSocket: ['payments'],
  },
  {
    name: 'Give money back',
    scope: 'refunds:write',
    rest: ['POST /payments/:id/refunds', 'POST /payments/:id/refunds/:refundId/resolve'],
  },
  {
    name: 'Write customers, plans, subscriptions and invoices',
    scope: 'billing:write',
    rest: [
      'POST /customers',
      'PATCH /customers/:id',
      'POST /plans',
      'PATCH /plans/:id',
      'POST /subscriptions',
      'PATCH /subscriptions/:id',
      'DELETE /subscriptions/:id',
      'POST /subscriptions/:id/pause',
      'POST /subscriptions/:id/resume',
      'POST /invoices',
      'POST /invoices/:id/finalize',
      'POST /invoices/:id/void',
      'POST /invoices/:id/pay',
      'POST /invoices/:id/credit-notes',
    ],
  },
  {
    name: 'Read customers, plans, subscriptions and invoices',
    scope: 'billing:read',
    rest: [
      'GET /customers',
      'GET /customers/:id',
      'GET /plans',
      'GET /plans/:id',
      'GET /subscriptions',
      'GET /subscriptions/:id',
      'GET /invoices',
      'GET /invoices/:id',
      'GET /invoices/:id/pdf',
      'GET /invoices/:id/credit-notes/:noteId/pdf',
    ],
  },
  {
    // Providers sign what they report.
    name: 'Read health and documentation, take reports of providers',
    scope: undefined,
    rest: ['GET /health', 'GET /openapi.json', 'GET /docs', 'GET /docs/*', 'POST /notifications/:provider'],
  },
];
