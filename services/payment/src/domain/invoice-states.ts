import type { TransitionTable } from './transitions.ts';

export type InvoiceState = 'draft' | 'open' | 'paid' | 'void';

export type InvoiceEvent = 'finalize' | 'void' | 'paid';

/** States of an invoice. From `open` on only its state changes; credit notes correct the rest. */
export const invoiceTable: TransitionTable<InvoiceState, InvoiceEvent> = {
  draft: { finalize: 'open', void: 'void', paid: 'refused' },
  open: { finalize: 'stays', void: 'void', paid: 'paid' },
  paid: { finalize: 'stays', void: 'refused', paid: 'stays' },
  // Money for a void invoice is the customer's, in the ledger.
  void: { finalize: 'refused', void: 'stays', paid: 'stays' },
};
