import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { startSendGrid } from '@rollcall/simulators/email/sendgrid.ts';
import type { Simulator } from '@rollcall/simulators/simulator.ts';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { type Caller, startCommunication } from './communication-service.ts';
import { writeProviders } from './providers-file.ts';
import { type Relay, startRelay } from './relay.ts';

const stack = new AsyncDisposableStack();
let sendgrid: Simulator;
let relay: Relay;
let ana: Caller;
/** What the mail server says to a recipient, or to a whole mail; undefined: yes. */
let toRecipient: string | undefined;
let toMail: string | undefined;
let taken = 0;

beforeAll(async () => {
  sendgrid = stack.use(await startSendGrid({ apiKey: 'key', retryDelaysMs: [] }));
  relay = stack.use(await startRelay(await startMailServer()));
  const smtp = { name: 'mx', kind: 'smtp', host: '127.0.0.1', tls: 'none', bounceDomain: 'shop.example' };
  const providers = {
    email: {
      from: { address: 'shop@shop.example' },
      providers: [
        { ...smtp, port: relay.port, timeoutSeconds: 15 },
        { name: 'sendgrid', kind: 'sendgrid', priority: 1, baseUrl: sendgrid.url, apiKey: 'key', timeoutSeconds: 15 },
      ],
    },
  };
  const service = stack.use(
    await startCommunication({
      databaseUrl: stack.use(await createDatabase()).url,
      // A mail that waits for its second provider would wait for long.
      settings: { ...(await writeProviders(providers)), ROLLCALL_RETRY_BASE_SECONDS: '600' },
    }),
  );
  ana = await service.callerOf('ana');
});

afterAll(() => stack.disposeAsync());

beforeEach(async () => {
  [toRecipient, toMail, taken] = [undefined, undefined, 0];
  await sendgrid.reset();
});

function asError(said: string): Error {
  const [code = '', ...words] = said.split(' ');
  return Object.assign(new Error(words.join(' ')), { responseCode: Number(code) });
}

async function startMailServer(): Promise<number> {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onRcptTo: (_address, _session, answer) => answer(toRecipient === undefined ? null : asError(toRecipient)),
    onData(stream, _session, answer) {
      stream.resume();
      stream.once('end', () => {
        if (toMail === 'reset') relay.spoil('reset');
        const isRefused = toMail !== undefined && toMail !== 'reset';
        if (!isRefused) taken += 1;
        answer(isRefused ? asError(toMail ?? '') : null);
      });
    },
  });
  const listening = server.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  stack.defer(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return (listening.address() as AddressInfo).port;
}

const taking = () => ({ mx: taken, sendgrid: sendgrid.requests().length });

/** Which provider a mail is tried at, and what becomes of it. */
async function sent() {
  const body = { to: 'ada@example.com', subject: 'Hello', text: 'Good day' };
  const answer = await ana('POST', '/emails', { body, headers: { prefer: 'wait=30' } });
  const path = `/messages/${String(answer.body?.['id'])}`;
  const read = async () => (await ana('GET', path)).body ?? {};
  await expect.poll(async () => (await read())['status'], { timeout: 30_000 }).not.toMatch(/queued|sending/);
  const { status, attempts } = await read();
  const tried = (attempts as { provider: string; status: string }[]).map((each) => `${each.provider} ${each.status}`);
  return { status, tried };
}

test('a mail goes by the first provider, and no other', async () => {
  expect(await sent()).toEqual({ status: 'sent', tried: ['mx accepted'] });
  expect(taking()).toEqual({ mx: 1, sendgrid: 0 });
});

test.each([
  ['a recipient', '451 4.7.1 Greylisted', 'failed'],
  ['a recipient', '550 5.7.1 Relaying denied', 'refused'],
  ['a mail', '451 4.3.0 Local error', 'failed'],
  ['a mail', '552 5.3.4 Message too big', 'refused'],
])('where the server says to %s %s, the next provider gets it at once', async (what, said, status) => {
  if (what === 'a mail') toMail = said;
  else toRecipient = said;
  expect(await sent()).toEqual({ status: 'sent', tried: [`mx ${status}`, 'sendgrid accepted'] });
  expect(taking()).toEqual({ mx: 0, sendgrid: 1 });
});

test.each([
  ['550 5.1.1 No such user', undefined],
  [undefined, '554 5.6.0 Not like this'],
])('where the server says %s to the recipient, and %s to the mail, no other would take it', async (first, second) => {
  [toRecipient, toMail] = [first, second];
  expect(await sent()).toEqual({ status: 'failed', tried: ['mx refused'] });
  expect(taking()).toEqual({ mx: 0, sendgrid: 0 });
  await ana('DELETE', '/suppressions/ada@example.com');
});

test('where the server takes a mail and hangs up, no other gets it', async () => {
  toMail = 'reset';
  expect(await sent()).toEqual({ status: 'unknown', tried: ['mx unknown'] });
  expect(taking()).toEqual({ mx: 1, sendgrid: 0 });
});

// The last one: nobody listens there from then on.
test('where nobody listens, the next provider gets it at once', async () => {
  await relay[Symbol.asyncDispose]();
  expect(await sent()).toEqual({ status: 'sent', tried: ['mx failed', 'sendgrid accepted'] });
  expect(taking()).toEqual({ mx: 0, sendgrid: 1 });
});
