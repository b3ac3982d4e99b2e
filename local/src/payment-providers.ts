import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import type { PlannedSimulators } from './simulators.ts';

/** Writes the providers of payments: the sandbox, whose page is ours, and simulators. */
export async function writePaymentProviders(file: string, { urls, settings }: PlannedSimulators): Promise<void> {
  const { payfast, yoco, stripe } = settings;
  const { id: merchantId, key: merchantKey, passphrase } = payfast.merchant;
  const providers = {
    default: 'sandbox',
    providers: {
      sandbox: { secret: `whsec_${randomBytes(24).toString('base64')}` },
      payfast: {
        merchantId,
        merchantKey,
        passphrase,
        siteUrl: urls.payfast,
        apiUrl: urls.payfast,
        sources: ['127.0.0.1'],
      },
      yoco: { secretKey: yoco.secretKey, webhookSecrets: [yoco.webhook.secret], apiUrl: `${urls.yoco}/api` },
      stripe: { secretKey: stripe.secretKey, webhookSecrets: [stripe.webhook.secret], apiUrl: urls.stripe },
    },
  };
  await writeFile(file, JSON.stringify(providers), { mode: 0o600 });
}
