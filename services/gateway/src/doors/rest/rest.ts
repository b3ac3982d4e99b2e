import type { IncomingMessage } from 'node:http';
import type { ConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { networkOf } from '../../admission/client-address.ts';
import { GatewayError } from '../../errors.ts';
import type { Endpoint } from '../../upstream/discovery/endpoint.ts';
import type { Target } from '../../upstream/discovery/targets.ts';
import { AnswerWatch } from './answer-watch.ts';
import { type ExchangeDeps, exchange, type ProxiedRequest } from './exchange.ts';
import { Upload } from './upload.ts';
import type { Attempt } from './upstream-failure.ts';

export interface RestProxyDeps extends ExchangeDeps {
  readonly concurrency: Pick<ConcurrencyLimiter, 'tryEnter'>;
}

/** What became of a request: the service's status, or why there is none. */
export type Outcome = Attempt & { readonly retries: number };

const MAX_RETRIES = 2;
/**
 * RFC 9110, section 9.2.2. A request with a body is not kept, and so not sent again once any of it
 * may have been sent.
 */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);
const RETRY_PAUSE_MS = 20;

/**
 * Sends requests on to services, both bodies as streams. What is repeatable is sent again when no
 * answer has begun, as long as the budget lasts, and what was not sent at all in any case: to
 * another endpoint where there is one. The breaker of the endpoint learns of every outcome.
 */
export interface RestProxy {
  /**
   * @returns once the answer has been handed over, or will not be; `failed` without `begun` leaves
   * the answer to who called.
   * @throws GatewayError UPSTREAM_UNAVAILABLE when no endpoint accepts a request: their breakers
   * are open, or they have as many as they may have; RATE_LIMITED when the caller has as many under
   * way as it may have.
   */
  forward(proxied: ProxiedRequest): Promise<Outcome>;
}

export function createRestProxy(deps: RestProxyDeps): RestProxy {
  const watch = new AnswerWatch();

  async function attempts(proxied: ProxiedRequest, upload: Upload | undefined): Promise<Outcome> {
    const { target, response } = proxied;
    const { endpoints } = target;
    endpoints.retries.deposit();
    let last: { readonly endpoint: Endpoint; readonly outcome: Attempt } | undefined;
    for (let retries = 0; ; retries += 1) {
      const resolving = endpoints.refresh();
      if (resolving !== undefined) await resolving;
      if (response.closed || upload?.destroyed === true) return { type: 'abandoned', retries };
      const endpoint = endpoints.acquire(last?.endpoint);
      if (endpoint === undefined) {
        if (last === undefined) throw unavailable(target);
        return { ...last.outcome, retries: retries - 1 };
      }
      const isRepeat = endpoint === last?.endpoint;
      const outcome = await exchange(deps, proxied, { endpoint, upload, retries, isRepeat, watch });
      const isUnsent = outcome.type === 'failed' && outcome.failure.unsent;
      if (isUnsent) endpoints.suspect(endpoint);
      // What was not sent has been no load to the service, and needs no budget.
      const isRepeated =
        mayRepeat(proxied, { outcome, upload, retries }) && (isUnsent || endpoints.retries.tryWithdraw());
      if (!isRepeated) return { ...outcome, retries };
      last = { endpoint, outcome };
      await sleep(RETRY_PAUSE_MS * (1 + Math.random()));
    }
  }

  return {
    async forward(proxied) {
      const { target, request, holder, forwarded } = proxied;
      const caller = holder?.caller.subject ?? `address ${networkOf(forwarded.clientAddress)}`;
      const leave = deps.concurrency.tryEnter(`${target.service} ${caller}`);
      if (leave === undefined) throw tooManyAtOnce(target);
      const upload = carriesBody(request) ? new Upload(request, proxied.bodyLimit) : undefined;
      try {
        return await attempts(proxied, upload);
      } finally {
        leave();
        // What no service has read is still to come.
        upload?.destroy();
      }
    },
  };
}

function tooManyAtOnce({ service }: Target): GatewayError {
  return new GatewayError('RATE_LIMITED', {
    message: 'As many requests to the service as one caller may have at once are under way',
    details: { service },
  });
}

function unavailable({ service, endpoints }: Target): GatewayError {
  const seconds = Math.max(1, Math.ceil(endpoints.retryAfterMs() / 1000));
  return new GatewayError('UPSTREAM_UNAVAILABLE', {
    ...(endpoints.areFull() ? { message: 'The service has as many requests under way as it may have' } : {}),
    headers: { 'retry-after': String(seconds) },
    details: { service },
  });
}

function carriesBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return length !== '0' || encoding !== undefined;
}

interface Tried {
  readonly outcome: Attempt;
  readonly upload: Upload | undefined;
  readonly retries: number;
}

function mayRepeat({ request }: ProxiedRequest, { outcome, upload, retries }: Tried): boolean {
  if (outcome.type !== 'failed' || outcome.begun || retries >= MAX_RETRIES) return false;
  const { unsent, retryable } = outcome.failure;
  return retryable && (unsent || (upload === undefined && REPEATABLE.has(request.method ?? '')));
}
