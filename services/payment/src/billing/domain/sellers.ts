import type { Party } from '../../domain/tax-invoice.ts';

/** Who issues invoices. */
export interface Seller {
  readonly party: Party;
  /** ISO 3166-1 code. */
  readonly country: string;
  /** Of invoices that say none. */
  readonly currency: string;
  /** What numbers of its invoices begin with. No other seller has it. */
  readonly series: string;
  readonly creditNoteSeries: string;
}

/** The seller for what a subject sells; undefined where the settings name none. */
export type FindSeller = (subject: string) => Seller | undefined;
