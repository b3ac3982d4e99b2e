import { createLogger } from '@rollcall/platform/log.ts';
import { createMetrics } from '@rollcall/platform/metrics.ts';
import { expect, onTestFinished, test } from 'vitest';
import { buildApp } from '../app.ts';
import { tokenRoute } from './token.ts';

/** Asks a gateway without clients for a token. */
async function ask(payload: string): Promise<{ readonly status: number; readonly body: unknown }> {
  const app = await buildApp({
    log: createLogger('test', 'silent'),
    metrics: createMetrics('test'),
    bodyLimit: 1000,
    routes: [
      (scope) =>
        tokenRoute(scope, {
          tokens: { issue: () => Promise.reject(new Error('There is nobody to issue one for')) },
          clients: { find: () => undefined },
          keys: { fingerprintKey: () => Buffer.alloc(32) },
          limits: { check: async () => ({ headers: {}, refusal: undefined }) },
        }),
    ],
    corsOrigins: new Set(),
    accessLog: undefined,
    tracing: undefined,
    closingLimitMs: 100,
    isStopping: () => false,
  });
  onTestFinished(() => app.close());
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const answer = await app.inject({ method: 'POST', url: '/api/v1/auth/token', headers, payload });
  return { status: answer.statusCode, body: answer.json() };
}

const FORM = 'grant_type=client_credentials&client_id=a&client_secret=b';
const others = (count: number) => Array.from({ length: count }, (_, index) => `&p${index}=1`).join('');

test.each([
  ['a parameter that is given twice', `${FORM}&client_id=a`],
  ['one that nobody knows, given twice', `${FORM}&x&y&x`],
  ['more parameters than there can be a reason for', FORM + others(62)],
])('%s is refused', async (_what, form) => {
  expect(await ask(form)).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
});

test('parameters that nobody knows are ignored', async () => {
  expect(await ask(FORM + others(61))).toMatchObject({ status: 401, body: { error: 'invalid_client' } });
});
