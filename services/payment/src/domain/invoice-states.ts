import type { TransitionTable } from './transitions.ts';

export type InvoiceState = 'draft' | 'open' | 'paid' | 'void' | 'uncollectible';

export type InvoiceEvent = 'finalize' | 'void' | 'paid' | 'write_off';

/** States of an invoice. From `open` on only its state changes; credit notes correct the rest. */
export const invoiceTable: TransitionTable<InvoiceState, InvoiceEvent> = {
  draft: { finalize: 'open', void: 'void', paid: 'refused', write_off: 'refused' },
  open: { finalize: 'stays', void: 'void', paid: 'paid', write_off: 'uncollectible' },
  paid: { finalize: 'stays', void: 'refused', paid: 'stays', write_off: 'refused' },
  // Money for a void invoice is the customer's, in the ledger.
  void: { finalize: 'refused', void: 'stays', paid: 'stays', write_off: 'refused' },
  uncollectible: { finalize: 'stays', void: 'void', paid: 'paid', write_off: 'stays' },
};
