import { systemClock } from '@rollcall/platform/clock.ts';
import { IdempotencyKeys } from './idempotency.ts';
import { type Simulator, type SimulatorOptions, startSimulator } from './simulator.ts';
import { addApi } from './stripe/api.ts';
import { createCalls, errorAnswer } from './stripe/calls.ts';
import { addPage, addSessions } from './stripe/checkout.ts';
import { addDisputes } from './stripe/disputes.ts';
import { API_VERSION } from './stripe/events.ts';
import type { SessionTerms } from './stripe/sessions.ts';
import { Store } from './stripe/store.ts';

export interface StripeOptions extends SimulatorOptions {
  /** `sk_test_…`. */
  readonly secretKey?: string;
  /** An endpoint that gets every event from the beginning, with its secret (`whsec_…`). */
  readonly webhook?: { readonly url: string; readonly secret: string };
}

const MINUTE_MS = 60_000;
/** Up to three days, less and less often. */
const RETRY_DELAYS_MS = [1, 5, 30, 120, 300, 600, 1200, 2000].map((minutes) => minutes * MINUTE_MS);

/**
 * Stripe as npm stripe 23.1.0 calls it: checkout sessions with their page, payment intents, stored
 * cards, refunds, events. Test cards and their payment methods do what Stripe's documentation says.
 */
export async function startStripe(options: StripeOptions = {}): Promise<Simulator> {
  const { secretKey = 'sk_test_simulated', clock = systemClock, webhook } = options;
  const store = new Store(clock);
  const keys = new IdempotencyKeys(clock);
  const terms = new Map<string, SessionTerms>();
  const registerFirst = (): void => {
    if (webhook === undefined) return;
    const base = store.base('webhook_endpoint', 'we');
    const details = { url: webhook.url, enabled_events: ['*'], api_version: API_VERSION, metadata: {} };
    store.put({ ...base, ...details, status: 'enabled' } as const);
    store.secrets.set(base.id, webhook.secret);
  };
  registerFirst();
  return await startSimulator(
    {
      name: 'stripe',
      retryDelaysMs: RETRY_DELAYS_MS,
      outcomes: ['succeeded', 'declined', 'refund-failed'],
      routes(app, context) {
        const calls = createCalls(app, { secretKey, store, keys, context });
        addApi(calls);
        addSessions(calls, { store, context, terms });
        addPage(app, { store, context, terms });
        addDisputes(app, { store, context });
      },
      credentials: (url) => ({ url, secretKey, webhook }),
      state: () => store.render(),
      reset() {
        store.clear();
        keys.clear();
        terms.clear();
        registerFirst();
      },
      errorBody: (status) =>
        errorAnswer(
          status === 429
            ? { type: 'rate_limit_error', code: 'rate_limit', message: 'Too many requests.' }
            : { type: 'api_error', message: 'Something went wrong on our side.' },
        ),
    },
    options,
  );
}
