import { systemClock } from '@rollcall/platform/clock.ts';
import type { FastifyRequest } from 'fastify';
import { IdempotencyKeys } from './idempotency.ts';
import { type Simulator, type SimulatorOptions, startSimulator } from './simulator.ts';
import { addApi } from './yoco/api.ts';
import { Checkouts } from './yoco/checkouts.ts';
import { eventNotification, type WebhookSubscription, type YocoEvent } from './yoco/events.ts';
import { addPage } from './yoco/page.ts';

export interface YocoOptions extends SimulatorOptions {
  /** `sk_live_…` or `sk_test_…`, which decides the mode: in test mode nothing can be refunded. */
  readonly secretKey?: string;
  /** A webhook that is registered from the beginning, with its secret (`whsec_…`). */
  readonly webhook?: { readonly url: string; readonly secret: string };
}

const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;
/** developer.yoco.com, accept-events. */
const RETRY_DELAYS_MS = [5, 300, 1800]
  .map((seconds) => seconds * SECOND_MS)
  .concat([2, 5, 10, 10].map((hours) => hours * HOUR_MS));

/**
 * Yoco's Checkout API (developer.yoco.com; WooCommerce plugin 3.9.1): checkouts with their page,
 * refunds, webhooks. Its base is the simulator's URL and `/api`.
 */
export async function startYoco(options: YocoOptions = {}): Promise<Simulator> {
  const { secretKey = 'sk_live_simulated', clock = systemClock, webhook } = options;
  const mode = secretKey.startsWith('sk_live_') ? 'live' : 'test';
  const checkouts = new Checkouts(clock, mode);
  const keys = new IdempotencyKeys(clock);
  const webhooks = new Map<string, WebhookSubscription>();
  const registerFirst = (): void => {
    if (webhook !== undefined) webhooks.set('sub_first', { id: 'sub_first', name: 'first', mode, ...webhook });
  };
  registerFirst();
  return await startSimulator(
    {
      name: 'yoco',
      retryDelaysMs: RETRY_DELAYS_MS,
      outcomes: ['refunded', 'refund-failed'],
      routes(app, context) {
        const tell = async (request: FastifyRequest, event: YocoEvent): Promise<void> => {
          await context.notify(
            request,
            [...webhooks.values()].map((subscription) => eventNotification(subscription, event)),
          );
        };
        addPage(app, { checkouts, clock, tell });
        const { url, outcomeOf } = context;
        void app.register(async (scope) =>
          addApi(scope, { secretKey, mode, checkouts, webhooks, keys, clock, url, outcomeOf, tell }),
        );
      },
      credentials: (url) => ({ url: `${url}/api`, secretKey, webhook }),
      state: () => checkouts.render(),
      reset() {
        checkouts.clear();
        keys.clear();
        webhooks.clear();
        registerFirst();
      },
      errorBody: () => ({ errorType: 'api_error', description: 'Something went wrong.' }),
    },
    options,
  );
}
