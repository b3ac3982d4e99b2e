import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import type { Simulator } from '@rollcall/simulators/simulator.ts';
import { startTwilio } from '@rollcall/simulators/sms/twilio.ts';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { type Caller, type CommunicationService, startCommunication } from './communication-service.ts';
import { writeProviders } from './providers-file.ts';

const stack = new AsyncDisposableStack();
const accountSid = `AC${'0'.repeat(31)}1`;
let twilio: Simulator;
let service: CommunicationService;
let ana: Caller;

beforeAll(async () => {
  twilio = stack.use(await startTwilio({ accountSid, authToken: 'right', retryDelaysMs: [] }));
  const smtp = { name: 'mx', kind: 'smtp', host: '127.0.0.1', port: await startMailServer(), tls: 'none' };
  const sms = { name: 'twilio', kind: 'twilio', baseUrl: twilio.url, accountSid, authToken: 'right' };
  const providers = {
    email: { from: { address: 'shop@shop.example' }, providers: [{ ...smtp, bounceDomain: 'shop.example' }] },
    sms: { providers: [{ ...sms, sender: '+27600000001', timeoutSeconds: 15 }] },
  };
  service = stack.use(
    await startCommunication({
      databaseUrl: stack.use(await createDatabase()).url,
      settings: { ...(await writeProviders(providers)), ROLLCALL_LOG_LEVEL: 'trace' },
    }),
  );
  ana = await service.callerOf('ana');
});

afterAll(() => stack.disposeAsync());

/** A server that says to whom it does not deliver, as many do. */
async function startMailServer(): Promise<number> {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onRcptTo({ address }, _session, answer) {
      answer(Object.assign(new Error(`5.1.1 <${address}> is unknown here`), { responseCode: 550 }));
    },
  });
  const listening = server.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  stack.defer(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return (listening.address() as AddressInfo).port;
}

const headers = { prefer: 'wait=20' };

test('neither the log nor a metric has an address, a number or a text, whatever becomes of a message', async () => {
  const to = '+27821119999';
  const statuses: unknown[] = [];
  const send = async (path: string, body: object) => {
    const answer = await ana('POST', path, { body, headers });
    statuses.push(answer.body?.['status'] ?? answer.status);
  };
  await send('/emails', { to: 'secret.person@example.com', subject: 'A zebra', text: 'of stripes' });
  await send('/emails', { to: 'secret.person', subject: 'A zebra', text: 'of stripes' });
  await send('/emails', { to: 'secret.person@example.com', template: 'welcome', variables: { name: 'Zebra' } });
  await send('/sms', { to, message: 'A zebra of stripes' });
  twilio.setOutcomes({ [to]: '21211' });
  await send('/sms', { to, message: 'A zebra of stripes' });
  twilio.addFaults({ kind: 'garbage', times: 1 });
  await send('/sms', { to: '+27821119998', message: 'A zebra of stripes' });
  expect(statuses).toEqual(['failed', 400, 422, 'sent', 'failed', 'unknown']);
  await ana('GET', '/messages?to=secret.person@example.com');
  await ana('GET', '/suppressions?recipient=secret.person@example.com');
  await ana('DELETE', '/suppressions/secret.person@example.com');
  const log = await readFile(service.service.logFile, 'utf8');
  const metrics = await (await fetch(`${service.service.adminUrl}/metrics`)).text();
  expect(metrics).toContain('outcome="unknown"');
  expect(log).not.toBe('');
  for (const text of [log, metrics]) expect(text).not.toMatch(/secret\.?person|82 ?111 ?999|zebra|stripes/i);
});
