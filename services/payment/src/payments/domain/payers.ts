/** Who paid without being a customer of billing. */
interface Payer {
  /** Whatever its capitals. */
  readonly email: string;
  /** Whose payments; of all subjects where undefined. */
  readonly subject: string | undefined;
}

/** What became of the payments of an address. */
interface ErasedPayer {
  /** How many have nothing of the payer any more, by this call. */
  readonly payments: number;
  /** Ids of customers whose payments have the address too; up to ten. They are erased by themselves. */
  readonly customers: readonly string[];
}

/**
 * Erases the payer of all payments that name no customer. Amounts, references and what was paid for stay.
 *
 * @throws ServiceError CUSTOMER_IN_USE while one of them is not over: then all stay as they are.
 */
export type ErasePayer = (payer: Payer) => Promise<ErasedPayer>;
