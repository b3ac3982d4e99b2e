/** What Stripe needs to know of us, and where it is. */
export interface StripeSettings {
  /** `sk_live_…` or `sk_test_…`, or a restricted key: the key decides the mode. A secret. */
  readonly secretKey: string;
  /** `whsec_…` of the endpoint of that mode; more than one while it is replaced. Secrets. */
  readonly webhookSecrets: readonly string[];
  /** `https://api.stripe.com`; the client adds paths of its own. */
  readonly apiUrl: URL;
}

/** Pure. Whether the key moves real money. */
export function isLive({ secretKey }: Pick<StripeSettings, 'secretKey'>): boolean {
  return /^[sr]k_live_/.test(secretKey);
}
