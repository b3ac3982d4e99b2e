import type { AnalysisCheck } from '@rollcall/crds/types.gen.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { type AllowedAddresses, addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { createGuardedAgent } from '@rollcall/platform/outbound/guarded-agent.ts';
import { Agent } from 'undici';
import type { Check, CheckRunner } from './check.ts';
import { createHttpProbe } from './http-probe.ts';
import { createPrometheusCheck } from './prometheus.ts';
import { createWebhookCheck } from './webhook.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/** @param addresses where the URLs of policies may lead; pods are asked wherever they are. */
export function createCheckRunner(addresses: AllowedAddresses): CheckRunner {
  const connect = { timeout: CONNECT_TIMEOUT_MS };
  const verifying = createGuardedAgent({
    mayConnect: addressRules[addresses],
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  });
  // A pod that is asked may be gone by the next time: no connection is kept (`pipelining: 0`).
  const trusting = new Agent({ connect: { ...connect, rejectUnauthorized: false }, pipelining: 0 });
  const prometheus = createPrometheusCheck(verifying);
  const http = createHttpProbe(trusting);
  const webhook = createWebhookCheck(verifying);

  const byKind: Check<AnalysisCheck> = async (check, subject, signal) => {
    if (check.prometheus !== undefined) return prometheus(check.prometheus, subject, signal);
    if (check.http !== undefined) return http(check.http, subject, signal);
    if (check.webhook !== undefined) return webhook(check.webhook, subject, signal);
    return { passed: false, message: 'the check is of a kind that this operator does not know' };
  };

  return {
    async measure(check, subject, signal) {
      try {
        return await byKind(check, subject, signal);
      } catch (error) {
        signal.throwIfAborted();
        return { passed: false, message: `it could not be measured: ${errorMessage(error)}` };
      }
    },
    close: async () => void (await Promise.all([verifying.close(), trusting.close()])),
  };
}
