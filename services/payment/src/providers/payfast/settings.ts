/** What PayFast needs to know of us, and where it is. */
export interface PayFastSettings {
  readonly merchantId: string;
  /** It is a field of the form, which the payer's browser sees. */
  readonly merchantKey: string;
  /** A secret. PayFast demands one for stored methods and its API. */
  readonly passphrase: string;
  /** `https://www.payfast.co.za` or its sandbox: the page of payments, and the check of ITNs. */
  readonly siteUrl: URL;
  /** `https://api.payfast.co.za`, live and sandbox. */
  readonly apiUrl: URL;
  /** Whether calls of the API say `testing=true`. */
  readonly isTest: boolean;
  /** Where ITNs go to; of ports 80, 8080, 8081 or 443. */
  readonly notifyUrl: string;
  /** Addresses and networks (CIDR) that ITNs may come from besides those that PayFast publishes. */
  readonly sources: readonly string[];
}

/** The one currency that PayFast pays out. */
export const PAYFAST_CURRENCY = 'ZAR';
