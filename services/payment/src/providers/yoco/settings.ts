/** What Yoco needs to know of us, and where it is. */
export interface YocoSettings {
  /** `sk_live_…` or `sk_test_…`: the key decides the mode. A secret. */
  readonly secretKey: string;
  /** `whsec_…`, of the webhook of that mode; more than one while it is replaced. Secrets. */
  readonly webhookSecrets: readonly string[];
  /** `https://payments.yoco.com/api`, live and test. */
  readonly apiUrl: URL;
}

/** The one currency of Yoco's checkouts. */
export const YOCO_CURRENCY = 'ZAR';

/** Pure. What Yoco calls the mode of a key. */
export function modeOf({ secretKey }: Pick<YocoSettings, 'secretKey'>): 'live' | 'test' {
  return secretKey.startsWith('sk_live_') ? 'live' : 'test';
}
