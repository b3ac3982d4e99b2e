// Double entry: each movement of money is an entry whose postings sum to zero. Debits are positive.

/**
 * Where money is, or what it was for.
 * - `provider`: what a provider holds for us,
 * - `disputed`: what it holds back until a dispute ends,
 * - `receivable`: what customers owe for invoices; negative where we owe them,
 * - `sales`, `tax`: what was earned, and what of it is the state's,
 * - `fees`, `dispute_losses`: what it cost.
 */
type AccountKind = 'provider' | 'disputed' | 'receivable' | 'sales' | 'tax' | 'fees' | 'dispute_losses';

interface Posting {
  /** Its kind, with the provider where it has one: `sales`, `provider:yoco`. */
  readonly account: string;
  /** In minor units; a debit is positive, a credit negative, and zero is none. */
  readonly amount: bigint;
}

export interface LedgerEntry {
  /** Of its cause: a movement that is reported twice is entered once. */
  readonly key: string;
  readonly kind: ProviderEntryKind | InvoiceEntryKind;
  readonly currency: string;
  /** They sum to zero. */
  readonly postings: readonly Posting[];
}

interface Cause {
  /** Of the payment, refund, dispute, invoice or credit note. */
  readonly causeId: string;
  readonly currency: string;
}

export type ProviderEntryKind =
  | 'capture'
  | 'fee'
  | 'refund'
  /** The payer's bank has sent a refund back. */
  | 'refund_returned'
  | 'dispute_opened'
  | 'dispute_won'
  | 'dispute_lost';

interface ProviderMovement extends Cause {
  readonly provider: string;
  /** In minor units, positive. */
  readonly amount: bigint;
  /** Whether the payment is for an invoice, which is a sale since it was issued. */
  readonly forInvoice: boolean;
}

/** The account of the sale: `receivable` where there is an invoice. */
type Side = AccountKind | 'sale';

const providerEntries: Readonly<Record<ProviderEntryKind, { readonly debit: Side; readonly credit: Side }>> = {
  capture: { debit: 'provider', credit: 'sale' },
  fee: { debit: 'fees', credit: 'provider' },
  refund: { debit: 'sale', credit: 'provider' },
  refund_returned: { debit: 'provider', credit: 'sale' },
  dispute_opened: { debit: 'disputed', credit: 'provider' },
  dispute_won: { debit: 'provider', credit: 'disputed' },
  // What was sold stays sold.
  dispute_lost: { debit: 'dispute_losses', credit: 'disputed' },
};

/** The entry of money that a provider took, kept, held back or sent back. */
export function providerEntry(kind: ProviderEntryKind, movement: ProviderMovement): LedgerEntry {
  const { provider, amount, forInvoice } = movement;
  const name = (side: Side): string => {
    if (side === 'sale') return forInvoice ? 'receivable' : 'sales';
    return side === 'provider' || side === 'disputed' ? `${side}:${provider}` : side;
  };
  const { debit, credit } = providerEntries[kind];
  return entry(kind, movement, [{ debit: name(debit), credit: name(credit), amount }]);
}

export type InvoiceEntryKind = 'invoice' | 'invoice_void' | 'credit_note';

/** Amounts in minor units, of an invoice or a credit note. */
interface InvoiceMovement extends Cause {
  readonly net: bigint;
  readonly tax: bigint;
}

/** The entry of what a customer owes, or no longer owes. */
export function invoiceEntry(kind: InvoiceEntryKind, movement: InvoiceMovement): LedgerEntry {
  const { net, tax } = movement;
  const owed = (account: string, amount: bigint): Transfer =>
    kind === 'invoice'
      ? { debit: 'receivable', credit: account, amount }
      : { debit: account, credit: 'receivable', amount };
  return entry(kind, movement, [owed('sales', net), owed('tax', tax)]);
}

interface Transfer {
  readonly debit: string;
  readonly credit: string;
  readonly amount: bigint;
}

/** Each transfer is a debit and a credit of one amount, so that no entry can be out of balance. */
function entry(kind: LedgerEntry['kind'], { causeId, currency }: Cause, transfers: readonly Transfer[]): LedgerEntry {
  const postings = transfers
    .filter(({ amount }) => amount !== 0n)
    .flatMap(({ debit, credit, amount }) => [
      { account: debit, amount },
      { account: credit, amount: -amount },
    ]);
  return { key: `${kind}:${causeId}`, kind, currency, postings };
}
