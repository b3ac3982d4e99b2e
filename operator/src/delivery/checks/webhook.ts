import type { WebhookCheck } from '@rollcall/crds/types.gen.ts';
import { ask } from '@rollcall/platform/outbound/exchange.ts';
import type { Dispatcher } from 'undici';
import type { Check } from './check.ts';

/** Nothing of the answer but its status counts. */
const LIMIT_BYTES = 64 * 1024;

/** Posts the job as it is in the API server; a 2xx answer passes. */
export function createWebhookCheck(dispatcher: Dispatcher): Check<WebhookCheck> {
  return async ({ url, timeoutSeconds }, { job }, signal) => {
    const { apiVersion, kind, metadata, spec, status } = job;
    const { name, namespace, uid, creationTimestamp } = metadata;
    const question = {
      method: 'POST',
      url: new URL(url),
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ apiVersion, kind, metadata: { name, namespace, uid, creationTimestamp }, spec, status }),
      timeoutMs: timeoutSeconds * 1000,
      limitBytes: LIMIT_BYTES,
    } as const;
    const { status: code } = await ask(dispatcher, question, signal);
    return { passed: code >= 200 && code < 300, message: `the webhook answered ${code}` };
  };
}
