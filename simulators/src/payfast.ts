import { systemClock } from '@rollcall/platform/clock.ts';
import { Account } from './payfast/account.ts';
import { addApi } from './payfast/api.ts';
import type { PayfastMode } from './payfast/calls.ts';
import { addCheckout } from './payfast/checkout.ts';
import { createNotices } from './payfast/notices.ts';
import type { Merchant } from './payfast/order.ts';
import { addRenewals } from './payfast/renewals.ts';
import { type Simulator, type SimulatorOptions, startSimulator } from './simulator.ts';

export interface PayfastOptions extends SimulatorOptions {
  /** The public one of PayFast's sandbox when absent. */
  readonly merchant?: Merchant;
  /** In the `sandbox`, which it is when absent, calls of the API need `testing=true`, and nothing can be refunded. */
  readonly mode?: PayfastMode;
}

const SANDBOX_MERCHANT: Merchant = { id: '10000100', key: '46f0cd694581a', passphrase: 'jt7NOE43FZPn' };
const MINUTE_MS = 60_000;
/** At once, after 10 minutes, then less and less often. */
const RETRY_DELAYS_MS = [0, 10, 20, 40, 80, 160].map((minutes) => minutes * MINUTE_MS);

/**
 * PayFast (payfast-php-sdk 1.1.6, developers.payfast.co.za): the form and its page, the notification
 * (ITN) before the way back, its validation, and the API. One server has the paths of all its hosts.
 */
export async function startPayfast(options: PayfastOptions = {}): Promise<Simulator> {
  const { merchant = SANDBOX_MERCHANT, mode = 'sandbox', clock = systemClock } = options;
  const account = new Account(clock);
  const issued = new Set<string>();
  return await startSimulator(
    {
      name: 'payfast',
      retryDelaysMs: RETRY_DELAYS_MS,
      outcomes: ['paid', 'declined'],
      routes(app, context) {
        const notices = createNotices(context, merchant, issued);
        addCheckout(app, { account, merchant, notices, issued });
        addRenewals(app, { account, notices });
        void app.register(async (scope) => addApi(scope, { account, merchant, mode, notices, context }));
      },
      credentials: (url) => ({
        url,
        mode,
        merchantId: merchant.id,
        merchantKey: merchant.key,
        passphrase: merchant.passphrase,
      }),
      state: () => account.render(),
      reset() {
        account.clear();
        issued.clear();
      },
      errorBody: (code) => ({ code, status: 'failed', data: { response: false, message: 'Application Error' } }),
    },
    options,
  );
}
