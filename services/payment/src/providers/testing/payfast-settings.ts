import type { PayFastSettings } from '../payfast/settings.ts';

/** The merchant of PayFast's public sandbox. @param base of a simulator, for its pages and its API. */
export function somePayFastSettings(base: URL, apiUrl: URL = base): PayFastSettings {
  return {
    merchantId: '10000100',
    merchantKey: '46f0cd694581a',
    passphrase: 'jt7NOE43FZPn',
    siteUrl: base,
    apiUrl,
    isTest: true,
    notifyUrl: 'https://shop.example.co.za/hooks/payfast',
    sources: [],
  };
}
