import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { startSendGrid } from '@rollcall/simulators/email/sendgrid.ts';
import { SMTPServer } from 'smtp-server';
import { afterAll, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { type Caller, startCommunication } from './communication-service.ts';
import { writeProviders } from './providers-file.ts';

const LIMIT_BYTES = 100_000;
const POLL = { timeout: 30_000 };

const stack = new AsyncDisposableStack();
let begun = 0;

afterAll(() => stack.disposeAsync());

/** A mail server with a limit. @param isSaid whether it tells the limit before, by the extension SIZE. */
async function startMailServer(isSaid: boolean): Promise<number> {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    size: LIMIT_BYTES,
    hideSize: !isSaid,
    onData(stream, _session, answer) {
      begun += 1;
      stream.resume();
      stream.once('end', () => {
        const refusal = Object.assign(new Error('5.3.4 Error: message file too big'), { responseCode: 552 });
        answer(stream.sizeExceeded ? refusal : null);
      });
    },
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  stack.defer(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return (server.server.address() as AddressInfo).port;
}

async function callerWith(provider: Record<string, unknown>): Promise<Caller> {
  const email = { from: { address: 'shop@shop.example' }, providers: [{ name: 'only', ...provider }] };
  const service = stack.use(
    await startCommunication({
      databaseUrl: stack.use(await createDatabase()).url,
      settings: { ...(await writeProviders({ email })), ROLLCALL_RETRY_BASE_SECONDS: '0.1' },
    }),
  );
  return service.callerOf('ana');
}

async function sent(caller: Caller, bytes: number) {
  const content = Buffer.alloc(bytes, 7).toString('base64');
  const attachments = [{ filename: 'papers.bin', contentType: 'application/octet-stream', content }];
  const body = { to: 'ada@example.com', subject: 'Papers', text: 'As asked', attachments };
  const answer = await caller('POST', '/emails', { body });
  const read = async () => (await caller('GET', `/messages/${String(answer.body?.['id'])}`)).body ?? {};
  await expect.poll(async () => (await read())['status'], POLL).toMatch(/^(?:sent|failed)$/);
  const { status, reason, detail, attempts } = await read();
  return { status, reason, detail, attempts: (attempts as unknown[]).length };
}

test.each([
  { isSaid: true, detail: 'EMESSAGE', contents: 0 },
  { isSaid: false, detail: '552 5.3.4', contents: 1 },
])('a mail beyond the size of its server fails at once; told before: $isSaid', async ({ isSaid, detail, contents }) => {
  const port = await startMailServer(isSaid);
  const ana = await callerWith({ kind: 'smtp', host: '127.0.0.1', port, tls: 'none', bounceDomain: 'shop.example' });
  begun = 0;
  expect(await sent(ana, LIMIT_BYTES)).toEqual({ status: 'failed', reason: 'too-large', detail, attempts: 1 });
  expect(begun).toBe(contents);
  // What is smaller goes on.
  expect(await sent(ana, LIMIT_BYTES / 2)).toMatchObject({ status: 'sent', attempts: 1 });
  const { body } = await ana('GET', '/providers');
  expect(body).toMatchObject({ providers: [{ status: 'available', failingSince: null }] });
});

test('a mail that its provider answers with 413 fails at once', async () => {
  const sendgrid = stack.use(await startSendGrid({ apiKey: 'key', retryDelaysMs: [] }));
  const ana = await callerWith({ kind: 'sendgrid', baseUrl: sendgrid.url, apiKey: 'key' });
  sendgrid.addFaults({ kind: 'status', status: 413, times: 1 });
  expect(await sent(ana, 1000)).toEqual({ status: 'failed', reason: 'too-large', detail: '413', attempts: 1 });
  expect(await sent(ana, 1000)).toMatchObject({ status: 'sent' });
});
