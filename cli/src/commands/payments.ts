import { randomUUID } from 'node:crypto';
import { type Command, Option } from 'commander';
import { parseCount, printPage, printResult, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { addGatewayOption, gatewayOf } from '../gateway.ts';
import {
  formatPayment,
  formatPayments,
  formatRefund,
  formatRefunds,
  type PaymentDetails,
  type PaymentRecord,
  type RefundDetails,
  type RefundRecord,
} from '../output/payments.ts';
import { queryOf } from '../query.ts';

const PATH = '/payment/payments';

interface PaymentPage {
  readonly payments: readonly PaymentRecord[];
  readonly nextCursor: string | null;
}

interface RefundPage {
  readonly refunds: readonly RefundDetails[];
  readonly nextCursor: string | null;
}

/** `rollcall payments`, `payment`, `refund`, `refunds`, `resolve-payment` and `resolve-refund`. */
export function addPaymentCommands(program: Command, deps: CliDeps): void {
  addListCommand(program, deps);
  addShowCommand(program, deps);
  addRefundCommand(program, deps);
  addRefundsCommand(program, deps);
  addResolveCommand(program, deps);
  addResolveRefundCommand(program, deps);
}

function addListCommand(program: Command, deps: CliDeps): void {
  const command = program.command('payments').description('list payments, newest first');
  withExamples(
    addGatewayOption(command)
      .addOption(new Option('--provider <provider>', 'only by it').choices(['payfast', 'yoco', 'stripe', 'sandbox']))
      .option('--status <status>', 'only in it, such as needs_review')
      .option('--email <address>', 'only of this payer')
      .option('--limit <count>', 'at most so many; 20 by default', parseCount),
    ['rollcall payments --status needs_review', 'rollcall payments --email ada@example.com -o json'],
  ).action(async function (this: Command) {
    const { provider, status, email, limit } = this.opts();
    const path = `${PATH}${queryOf({ provider, status, customerEmail: email, limit })}`;
    const body = await gatewayOf(this, deps).call<PaymentPage>({ method: 'GET', path });
    printPage(this, deps, {
      body,
      rows: body.payments,
      what: 'payments',
      asText: (payments) => formatPayments(payments, deps.now()),
    });
  });
}

function addShowCommand(program: Command, deps: CliDeps): void {
  const command = program.command('payment').description('show one payment and what happened to it');
  withExamples(addGatewayOption(command).argument('<payment>', 'id of the payment'), [
    'rollcall payment bac0a4e9-800c-491e-b4a7-87ac35488a48',
  ]).action(async function (this: Command, id: string) {
    const path = `${PATH}/${encodeURIComponent(id)}`;
    const body = await gatewayOf(this, deps).call<PaymentDetails>({ method: 'GET', path });
    printResult(this, deps, { body, asText: (payment) => formatPayment(payment, deps.now()) });
  });
}

function addRefundCommand(program: Command, deps: CliDeps): void {
  const command = program.command('refund').description('give the money of a payment back, all that is left or a part');
  withExamples(
    addGatewayOption(command)
      .argument('<payment>', 'id of the payment')
      .requiredOption('--reason <reason>', 'why, for the books')
      .option('--amount <minor units>', 'a part: 5000 is R50.00', parseCount)
      .option('--key <key>', 'calls with the same one refund once; by default each call is a refund of its own'),
    ['rollcall refund bac0a4e9-800c-491e-b4a7-87ac35488a48 --reason returned --amount 5000 --key return-7'],
  ).action(async function (this: Command, id: string) {
    const { reason, amount, key = randomUUID() } = this.opts();
    const body = await gatewayOf(this, deps).call<RefundRecord>({
      method: 'POST',
      path: `${PATH}/${encodeURIComponent(id)}/refunds`,
      body: { reason, ...(amount !== undefined && { amount }) },
      headers: { 'idempotency-key': key },
    });
    printResult(this, deps, { body, asText: (refund) => formatRefund(refund) });
  });
}

function addRefundsCommand(program: Command, deps: CliDeps): void {
  const command = program.command('refunds').description('list refunds, newest first');
  withExamples(
    addGatewayOption(command)
      .option('--status <status>', 'only in it, such as needs_review')
      .option('--limit <count>', 'at most so many; 20 by default', parseCount),
    ['rollcall refunds --status needs_review'],
  ).action(async function (this: Command) {
    const { status, limit } = this.opts();
    const path = `/payment/refunds${queryOf({ status, limit })}`;
    const body = await gatewayOf(this, deps).call<RefundPage>({ method: 'GET', path });
    printPage(this, deps, {
      body,
      rows: body.refunds,
      what: 'refunds',
      asText: (refunds) => formatRefunds(refunds, deps.now()),
    });
  });
}

function addResolveCommand(program: Command, deps: CliDeps): void {
  const command = program.command('resolve-payment').description('decide on a payment that is in review');
  withExamples(
    addGatewayOption(command)
      .argument('<payment>', 'id of the payment')
      .addOption(
        new Option('--outcome <outcome>', 'what became of the money, as the provider says')
          .choices(['paid', 'unpaid', 'refunded', 'dismissed'])
          .makeOptionMandatory(),
      )
      .option('--reason <reason>', 'how you know, for the history of the payment'),
    ["rollcall resolve-payment bac0a4e9-800c-491e-b4a7-87ac35488a48 --outcome paid --reason 'seen in the dashboard'"],
  ).action(async function (this: Command, id: string) {
    const { outcome, reason } = this.opts();
    const path = `${PATH}/${encodeURIComponent(id)}/resolve`;
    const body = await gatewayOf(this, deps).call<PaymentRecord>({ method: 'POST', path, body: { outcome, reason } });
    printResult(this, deps, { body, asText: (payment) => formatPayments([payment], deps.now()) });
  });
}

function addResolveRefundCommand(program: Command, deps: CliDeps): void {
  const command = program.command('resolve-refund').description('decide on a refund that is in review');
  withExamples(
    addGatewayOption(command)
      .argument('<payment>', 'id of the payment')
      .argument('<refund>', 'id of the refund')
      .addOption(
        new Option('--outcome <outcome>', 'whether the money went back, as the provider says')
          .choices(['succeeded', 'failed'])
          .makeOptionMandatory(),
      )
      .requiredOption('--reason <reason>', 'how you know'),
    [
      'rollcall refunds --status needs_review',
      'rollcall resolve-refund bac0a4e9-800c-491e-b4a7-87ac35488a48 5f0c1f6e-2b0e-4f5a-9a52-1c8f1d0a7b11 ' +
        "--outcome succeeded --reason 'seen in the dashboard'",
    ],
  ).action(async function (this: Command, id: string, refundId: string) {
    const { outcome, reason } = this.opts();
    const path = `${PATH}/${encodeURIComponent(id)}/refunds/${encodeURIComponent(refundId)}/resolve`;
    const body = await gatewayOf(this, deps).call<RefundDetails>({ method: 'POST', path, body: { outcome, reason } });
    printResult(this, deps, { body, asText: (refund) => formatRefunds([refund], deps.now()) });
  });
}
